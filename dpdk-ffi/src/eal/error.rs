//! Why the EAL did not start, in one sentence.

use std::fmt;

use super::MemoryMode;
use crate::limits::Limits;

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
    /// The memory could not be reserved although there seemed to be enough: a limit forbids it.
    MemoryRefused {
        /// MiB asked for.
        wanted_mib: u32,
        /// DPDK's words.
        reason: String,
        /// MiB that the address space of this process is limited to (`ulimit -v`), if it is.
        limit_mib: Option<u64>,
    },
    /// Huge pages were free when counted and gone when needed: another program was faster.
    HugePagesGone {
        /// MiB asked for.
        wanted_mib: u32,
        /// DPDK's words.
        reason: String,
    },
    /// Fewer files can be opened than a start needs.
    FewDescriptors {
        /// Files that can still be opened.
        free: u64,
        /// Those that it takes.
        needed: u64,
        /// The limit, `ulimit -n`; zero when it is not known.
        limit: u64,
    },
    /// A file or a timer could not be had from the system while starting.
    DescriptorRefused {
        /// DPDK's words.
        reason: String,
    },
    /// A thread could not be started.
    ThreadRefused {
        /// The system's or DPDK's words.
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
            Self::MemoryRefused { wanted_mib, reason, limit_mib: Some(limit) } => write!(
                f,
                "{wanted_mib} MiB of memory were refused ({reason}): the address space of this process is limited to \
                 {limit} MiB, raise that with ulimit -v, or ask for less"
            ),
            Self::MemoryRefused { wanted_mib, reason, limit_mib: None } => write!(
                f,
                "{wanted_mib} MiB of memory were refused ({reason}): raise the memory limit of the cgroup, \
                 or ask for less"
            ),
            Self::HugePagesGone { wanted_mib, reason } => write!(
                f,
                "{wanted_mib} MiB of huge pages were free and then taken by another program ({reason}): \
                 run it again, or raise /proc/sys/vm/nr_hugepages"
            ),
            Self::FewDescriptors { free, needed, limit } => write!(
                f,
                "{needed} files must be opened and {free} can be, of a limit of {limit}: \
                 raise it, for example with ulimit -n 1024"
            ),
            Self::DescriptorRefused { reason } => write!(
                f,
                "the system refused DPDK a file or a timer ({reason}): raise the limit of open files, \
                 for example with ulimit -n 1024"
            ),
            Self::ThreadRefused { reason } => write!(
                f,
                "a thread could not be started ({reason}): raise the limit of processes and threads \
                 (ulimit -u, pids.max of the cgroup), or end some"
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

/// Finds the cause in all that DPDK printed while failing to start on `memory`.
pub(super) fn translate(printed: &str, memory: MemoryMode, limits: Limits) -> EalError {
    // Behind the usage page stands nothing that was not said before it, but any word may occur in it.
    let printed = without_usage(printed);
    let lines: Vec<&str> = printed.lines().map(without_prefix).filter(|line| is_alarm(line)).collect();
    // The most decisive words first, wherever they stand.
    let find = |words: &[&str]| {
        let line = words.iter().find_map(|word| lines.iter().find(|line| line.contains(word)));
        line.map(|line| (*line).to_owned())
    };
    if let Some(reason) = find(&["does not support", "unsupported cpu"]) {
        return EalError::Cpu { reason };
    }
    if let Some(reason) = find(&DESCRIPTORS) {
        return EalError::DescriptorRefused { reason };
    }
    if let Some(reason) = find(&THREADS) {
        return EalError::ThreadRefused { reason };
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
    if let Some(reason) = find(&MEMORY) {
        return refused(memory, reason, limits);
    }
    // The first alarm, not the last line: what follows are its consequences, and the usage page.
    let first = lines.iter().find(|line| ALARMS.iter().any(|word| line.contains(word)));
    let reason = first.or(lines.last()).map(|&line| line.to_owned());
    EalError::Other { reason: reason.unwrap_or_else(|| "it gave no reason".to_owned()) }
}

/// Words of lines that tell of too few descriptors.
const DESCRIPTORS: [&str; 5] = [
    "Too many open files",
    "Cannot init alarm",
    "Cannot create pipe",
    "Cannot create epoll",
    "cannot open sysfs",
];
/// Words of lines that tell of too few threads.
const THREADS: [&str; 6] = [
    "Resource temporarily unavailable",
    "Failed to create thread",
    "failed to create mp thread",
    "Cannot create thread",
    "pthread_create failed",
    "Cannot init interrupt-handling thread",
];
/// Words of lines that tell of too little memory: numbers first, consequences last.
const MEMORY: [&str; 16] = [
    "failed to map segment",
    "Not enough memory available",
    "No free",
    "No available",
    "attempted to allocate",
    "SIGBUS",
    "mmap() failed",
    "Cannot mmap",
    "annot get a virtual area",
    "VA space",
    "annot allocate",
    "ot enough memory",
    "Cannot get hugepage information",
    "Cannot init memory",
    "Cannot init malloc heap",
    "Cannot init memzone",
];
const ALARMS: [&str; 5] = ["annot ", "rror", "ailed", "nvalid", "FATAL"];

/// Whether a line can be a reason: DPDK also prints remarks, such as on huge pages of a size that is not used.
fn is_alarm(line: &str) -> bool {
    !line.is_empty() && !line.contains("no mounted hugetlbfs")
}

fn refused(memory: MemoryMode, reason: String, limits: Limits) -> EalError {
    let limit_mib = limits.address_space_bytes.map(|bytes| bytes >> 20);
    match (memory, limit_mib) {
        (MemoryMode::HugePages { mib }, None) => EalError::HugePagesGone { wanted_mib: mib, reason },
        (MemoryMode::HugePages { mib } | MemoryMode::Ordinary { mib }, limit_mib) => {
            EalError::MemoryRefused { wanted_mib: mib, reason, limit_mib }
        }
    }
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
    use super::{EalError, Limits, MemoryMode};

    const ORDINARY: MemoryMode = MemoryMode::Ordinary { mib: 64 };

    fn translate(printed: &str) -> EalError {
        super::translate(printed, ORDINARY, Limits::default())
    }

    #[test]
    fn runtime_directory_is_named() {
        let printed = "EAL: Detected CPU lcores: 2\nEAL: Error creating '/tmp/dpdk/x': Permission denied\n\
                       EAL: FATAL: Invalid 'command line' arguments.\n";
        let error = translate(printed);
        assert!(matches!(&error, EalError::RuntimeDir { path, .. } if path == "/tmp/dpdk/x"), "{error}");
    }

    #[test]
    fn usage_page_becomes_one_sentence() {
        let printed = "dcp: unrecognized option '--nonsense'\nUsage: dcp [options]\nEAL common options:\n  -c COREMASK\n";
        let sentence = translate(printed).to_string();
        assert!(sentence.contains("--nonsense") && !sentence.contains("Usage"), "{sentence}");
        assert_eq!(sentence.lines().count(), 1);
    }

    #[test]
    fn silence_is_said_to_be_silence() {
        assert_eq!(translate(""), EalError::Other { reason: "it gave no reason".to_owned() });
    }

    // As a lost race for huge pages was printed.
    const RACE: &str = "EAL: Detected CPU lcores: 2\nEAL: Selected IOVA mode 'VA'\n\
        EAL: 43 hugepages of size 2097152 reserved, but no mounted hugetlbfs found for that size\n\
        EAL: Not enough memory available! Requested: 94MB, available: 86MB\n\
        EAL: FATAL: Cannot init memory\nEAL: Cannot init memory\n";

    #[test]
    fn lost_race_for_huge_pages_names_the_numbers_and_not_the_mount() {
        let error = super::translate(RACE, MemoryMode::HugePages { mib: 94 }, Limits::default());
        let reason = "Not enough memory available! Requested: 94MB, available: 86MB".to_owned();
        assert_eq!(error, EalError::HugePagesGone { wanted_mib: 94, reason });
        assert!(error.to_string().contains("another program"), "{error}");
    }

    #[test]
    fn limit_of_the_address_space_is_named() {
        let printed = "EAL: Cannot mmap((nil), 0x4000000, 0x3, 0x22, -1, 0x0): Cannot allocate memory\n\
                       EAL: FATAL: Cannot init memory\n";
        let limits = Limits { address_space_bytes: Some(160 << 20), ..Limits::default() };
        let error = super::translate(printed, ORDINARY, limits);
        assert!(matches!(error, EalError::MemoryRefused { limit_mib: Some(160), .. }), "{error}");
        assert!(error.to_string().contains("limited to 160 MiB, raise that with ulimit -v"), "{error}");
        let plugin = "EAL: libx.so.1: failed to map segment from shared object\n";
        assert!(super::translate(plugin, ORDINARY, limits).to_string().contains("ulimit -v"));
        let sentence = translate(printed).to_string();
        assert!(sentence.contains("cgroup") && !sentence.contains("ulimit"), "{sentence}");
    }

    #[test]
    fn missing_descriptors_and_threads_say_what_to_raise() {
        for (printed, raise) in [
            ("EAL: FATAL: Cannot init alarm\nEAL: Cannot init alarm\n", "ulimit -n"),
            ("EAL: eal_parse_sysfs_value(): cannot open sysfs value /sys/x\n", "ulimit -n"),
            ("EAL: Cannot create pipe\nEAL: FATAL: Cannot init interrupt-handling thread\n", "ulimit -n"),
            ("EAL: Failed to create thread for interrupt handling\n", "ulimit -u"),
            ("EAL: failed to create mp thread: Resource temporarily unavailable\n", "ulimit -u"),
        ] {
            let sentence = translate(printed).to_string();
            assert!(sentence.contains(raise) && !sentence.contains('\n'), "{sentence}");
        }
    }
}
