//! Why the EAL did not start, in one sentence.

use std::fmt;

/// Why the EAL did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EalError {
    /// DPDK can be started once per process, also when the first try failed.
    AlreadyStarted,
    /// A core that does not exist, or that this process may not use.
    NoSuchCore {
        /// The core asked for.
        core: usize,
        /// Those that there are.
        available: String,
    },
    /// Less memory than the EAL itself needs.
    MemoryTooSmall {
        /// MiB asked for.
        mib: u32,
        /// The least.
        least_mib: u32,
    },
    /// Huge pages were required, and too few can be had.
    NoHugePages {
        /// MiB asked for.
        wanted_mib: u32,
        /// MiB of free huge pages.
        free_mib: u64,
    },
    /// The machine has not that much memory.
    NoMemory {
        /// MiB asked for.
        wanted_mib: u32,
        /// MiB that can be had.
        available_mib: u64,
    },
    /// The memory could not be reserved although there seemed to be enough: a limit, or another process was faster.
    MemoryRefused {
        /// MiB asked for.
        wanted_mib: u32,
        /// DPDK's words.
        reason: String,
    },
    /// No directory for DPDK's run-time files.
    RuntimeDir {
        /// Where it was tried.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// The DPDK library was built for another processor.
    Cpu {
        /// DPDK's words.
        reason: String,
    },
    /// An argument that this DPDK does not take.
    BadArgument {
        /// DPDK's words.
        reason: String,
    },
    /// Anything else.
    Other {
        /// DPDK's last words.
        reason: String,
    },
}

impl fmt::Display for EalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => f.write_str(
                "DPDK was started in this process before: keep the first Eal, or start a new process",
            ),
            Self::NoSuchCore { core, available } if available.is_empty() => {
                write!(
                    f,
                    "core {core} cannot be used: this process has no core at all, check its affinity mask"
                )
            }
            Self::NoSuchCore { core, available } => {
                write!(f, "core {core} does not exist or is not ours: choose from {available}")
            }
            Self::MemoryTooSmall { mib, least_mib } => {
                write!(f, "{mib} MiB are too little for DPDK: give it {least_mib} or more")
            }
            Self::NoHugePages { wanted_mib, free_mib } => write!(
                f,
                "{wanted_mib} MiB of huge pages are needed and {free_mib} are free: \
                 raise /proc/sys/vm/nr_hugepages, or run without huge pages"
            ),
            Self::NoMemory { wanted_mib, available_mib } => write!(
                f,
                "{wanted_mib} MiB of memory are needed and {available_mib} are available: \
                 use fewer hosts, shallower queues, or a larger machine"
            ),
            Self::MemoryRefused { wanted_mib, reason } => write!(
                f,
                "{wanted_mib} MiB of memory were refused ({reason}): raise the memory limit (ulimit -v, cgroup), \
                 or ask for less"
            ),
            Self::RuntimeDir { path, reason } => write!(
                f,
                "DPDK's run-time directory {path} cannot be used ({reason}): make it writable, \
                 or point XDG_RUNTIME_DIR at a writable directory and run as an ordinary user"
            ),
            Self::Cpu { reason } => {
                write!(f, "this libdpdk is for another processor ({reason}): install a fitting one")
            }
            Self::BadArgument { reason } => {
                write!(f, "an argument was refused ({reason}): leave it out, or check the DPDK version")
            }
            Self::Other { reason } => write!(f, "DPDK did not start: {reason}"),
        }
    }
}

impl std::error::Error for EalError {}

/// Finds the cause in all that DPDK printed while failing.
pub(super) fn translate(printed: &str, memory_mib: u32) -> EalError {
    // Behind the usage page stands nothing that was not said before it, but any word may occur in it.
    let printed = without_usage(printed);
    let lines: Vec<&str> = printed.lines().map(without_prefix).filter(|line| !line.is_empty()).collect();
    let find = |words: &[&str]| {
        let line = lines.iter().find(|line| words.iter().any(|word| line.contains(word)));
        line.map(|line| (*line).to_owned())
    };
    if let Some(reason) = find(&["does not support", "unsupported cpu"]) {
        return EalError::Cpu { reason };
    }
    if let Some(reason) = find(&["runtime director", "Error creating '"]) {
        let path = reason.split('\'').nth(1).unwrap_or("(unnamed)").to_owned();
        return EalError::RuntimeDir { path, reason };
    }
    if let Some(reason) =
        find(&["unrecognized option", "invalid option", "requires an argument", "nvalid parameter"])
    {
        return EalError::BadArgument { reason };
    }
    const MEMORY: [&str; 6] =
        ["hugepage", "Cannot init memory", "Not enough memory", "annot allocate memory", "mmap", "No free"];
    if let Some(reason) = find(&MEMORY) {
        return EalError::MemoryRefused { wanted_mib: memory_mib, reason };
    }
    // The first alarm, not the last line: what follows are its consequences, and the usage page.
    let reason = find(&["annot ", "rror", "ailed", "nvalid", "FATAL"])
        .or_else(|| lines.last().map(|&it| it.to_owned()));
    EalError::Other { reason: reason.unwrap_or_else(|| "it gave no reason".to_owned()) }
}

fn without_usage(printed: &str) -> String {
    // From the heading to the next line of the log: the log and standard output are captured one after the other.
    let mut in_usage = false;
    let mut kept = String::new();
    for line in printed.lines() {
        in_usage = (in_usage || line.trim_start().starts_with("Usage:")) && !line.starts_with("EAL:");
        if !in_usage {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// DPDK prints `EAL: ` or `EAL: FATAL: ` before its words.
fn without_prefix(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_prefix("EAL:").unwrap_or(line).trim_start();
    line.strip_prefix("FATAL:").unwrap_or(line).trim_start()
}

#[cfg(test)]
mod tests {
    use super::{EalError, translate};

    #[test]
    fn runtime_directory_is_named() {
        let printed = "EAL: Detected CPU lcores: 2\nEAL: Error creating '/tmp/dpdk/x': Permission denied\n\
                       EAL: FATAL: Invalid 'command line' arguments.\n";
        let error = translate(printed, 64);
        assert!(matches!(&error, EalError::RuntimeDir { path, .. } if path == "/tmp/dpdk/x"), "{error}");
    }

    #[test]
    fn usage_page_becomes_one_sentence() {
        let printed = "dcp: unrecognized option '--nonsense'\nUsage: dcp [options]\nEAL common options:\n  -c COREMASK\n";
        let sentence = translate(printed, 64).to_string();
        assert!(sentence.contains("--nonsense") && !sentence.contains("Usage"), "{sentence}");
        assert_eq!(sentence.lines().count(), 1);
    }

    #[test]
    fn silence_is_said_to_be_silence() {
        assert_eq!(translate("", 64), EalError::Other { reason: "it gave no reason".to_owned() });
    }
}
