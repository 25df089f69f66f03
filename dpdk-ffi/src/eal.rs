//! DPDK's environment: started once per process, with or without huge pages, leaving nothing behind.

mod capture;
mod error;
mod runtime_dir;
mod stale;

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) use capture::log_tail;
pub use error::EalError;
use runtime_dir::RuntimeDir;

use crate::lcore;
use crate::limits::Limits;
use crate::memory::{HugePreference, HugeTurn, MemInfo, available_bytes, prove_huge_pages};

/// How to start the EAL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EalConfig {
    /// Memory for all pools and rings of the process, in MiB, 16 or more. A header mbuf takes about 640 bytes, a payload
    /// mbuf 256: 33 hosts with 4096 of each need 120.
    pub memory_mib: u32,
    /// Whether that memory is to be huge pages.
    pub huge: HugePreference,
    /// Cores that the program will pin threads to; checked to exist, and the EAL itself sits on the first one. Empty:
    /// no check, first available core.
    pub cores: Vec<usize>,
    /// Whether DPDK's telemetry socket is opened (for `dpdk-telemetry.py`). Its directory is there until the last handle
    /// goes, so a SIGKILL leaves it behind.
    pub telemetry: bool,
    /// Whether DPDK's channel between processes is opened: net_memif insists on it. Takes ordinary pages, whatever `huge`
    /// says short of `Require`; with huge pages a SIGKILL leaves a directory behind, as with `telemetry`.
    pub ipc: bool,
    /// Addresses of PCI devices that DPDK may take over, such as `0000:3b:00.0`; no other is touched.
    pub pci: Vec<String>,
    /// Further EAL arguments, for experts.
    pub extra_args: Vec<String>,
}

impl Default for EalConfig {
    fn default() -> Self {
        Self {
            memory_mib: 256,
            huge: HugePreference::Auto,
            cores: Vec::new(),
            telemetry: false,
            ipc: false,
            pci: Vec::new(),
            extra_args: Vec::new(),
        }
    }
}

/// The memory that DPDK runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMode {
    /// Huge pages, private to the process: they are free again however it ends.
    HugePages {
        /// MiB reserved.
        mib: u32,
    },
    /// Ordinary pages: more TLB misses, no set-up needed.
    Ordinary {
        /// MiB reserved.
        mib: u32,
    },
}

impl fmt::Display for MemoryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HugePages { mib } => write!(f, "{mib} MiB of huge pages"),
            Self::Ordinary { mib } => write!(f, "{mib} MiB of ordinary pages"),
        }
    }
}

/// The running EAL. Clones share it, and everything made from it holds one; when the last goes, its files go.
///
/// A process can start it once: keep a handle for as long as it may be needed again.
///
/// `rte_eal_cleanup` is never called: it unmaps the heap under the EAL's own interrupt thread, which was seen to crash one
/// exit in a hundred with net_memif. Devices are closed by their owners, and the kernel takes back the rest.
#[derive(Clone, Debug)]
pub struct Eal {
    inner: Arc<EalInner>,
}

#[derive(Debug)]
struct EalInner {
    memory: MemoryMode,
    telemetry: bool,
    /// Removed when dropped.
    runtime_dir: Option<RuntimeDir>,
}

impl Eal {
    /// Starts the EAL.
    ///
    /// The calling thread's affinity stays as it is: DPDK narrows that of the thread that starts it, so a helper thread
    /// does. Standard output and error are set aside meanwhile, since DPDK prints its usage there: other threads should
    /// not write to them during this call.
    ///
    /// # Errors
    /// [`EalError`]: one sentence that says what is missing and what to do.
    pub fn start(config: EalConfig) -> Result<Self, EalError> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        let core = check_cores(&config.cores)?;
        check_descriptors(&Limits::read())?;
        let Memory { mode: memory, turn } = choose_memory(&config)?;
        check_address_space(&Limits::read(), config.memory_mib)?;
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(EalError::AlreadyStarted);
        }
        // Nothing of DPDK's was touched yet, so the caller may try again.
        let runtime_dir = RuntimeDir::prepare().inspect_err(|_| STARTED.store(false, Ordering::SeqCst))?;
        let arguments = arguments(&config, memory, core, &prefix());
        let helper = thread::Builder::new().name("eal-start".into()).spawn(move || init(arguments, memory));
        let outcome = helper.map(thread::JoinHandle::join);
        // The pages are ours now, or the start has failed.
        drop(turn);
        let runtime_dir = runtime_dir.settle();
        let outcome = outcome.map_err(|error| EalError::ThreadRefused { reason: error.to_string() })?;
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(EalError::Other { reason: "the thread that started it panicked".into() }),
        }
        // Otherwise nothing there is used once the EAL runs: files stay open, and the channel's only would-be user, a
        // second process of DPDK's own kind, does not exist. Removed at once, a later SIGKILL leaves nothing.
        let heap_asks_peers = config.ipc && matches!(memory, MemoryMode::HugePages { .. });
        let runtime_dir = (config.telemetry || heap_asks_peers).then_some(runtime_dir);
        let telemetry = config.telemetry;
        Ok(Self { inner: Arc::new(EalInner { memory, telemetry, runtime_dir }) })
    }

    /// The memory that was chosen.
    pub fn memory(&self) -> MemoryMode {
        self.inner.memory
    }

    /// Where DPDK's telemetry socket is, if it was asked for: `…/dpdk/PREFIX/dpdk_telemetry.v2`.
    ///
    /// `dpdk-telemetry.py -f PREFIX` speaks to it. For a process that does not run as root, say
    /// `XDG_RUNTIME_DIR=…` with what stands in front of `/dpdk/` too.
    pub fn telemetry_socket(&self) -> Option<PathBuf> {
        let directory = self.inner.runtime_dir.as_ref().filter(|_| self.inner.telemetry)?.path()?;
        Some(directory.join("dpdk_telemetry.v2"))
    }

    /// DPDK's own name and version.
    pub fn version() -> &'static str {
        // SAFETY: needs nothing.
        let version = unsafe { dpdk_sys::dcpshim_dpdk_version() };
        // SAFETY: DPDK returned a static string.
        let version = unsafe { CStr::from_ptr(version) };
        version.to_str().unwrap_or("DPDK")
    }
}

/// The core for the EAL itself.
fn check_cores(wanted: &[usize]) -> Result<usize, EalError> {
    let available = lcore::available_cores();
    if let Some(&core) = wanted.iter().find(|core| !available.contains(core)) {
        return Err(EalError::NoSuchCore { core, available: lcore::core_list() });
    }
    wanted
        .first()
        .or(available.first())
        .copied()
        .ok_or(EalError::NoSuchCore { core: 0, available: String::new() })
}

/// Refuses what would fail in the middle of the start, with a log that has no descriptor to go to.
fn check_descriptors(limits: &Limits) -> Result<(), EalError> {
    let free = limits.descriptors_free();
    if free >= DESCRIPTORS {
        return Ok(());
    }
    Err(EalError::FewDescriptors { free, needed: DESCRIPTORS, limit: limits.descriptors.unwrap_or(0) })
}

/// Files that a start opens at most at a time, with some for devices: ten were seen to be too few, eleven enough.
const DESCRIPTORS: u64 = 24;

/// What the EAL is to run on.
struct Memory {
    mode: MemoryMode,
    /// Kept until huge pages are taken.
    turn: Option<HugeTurn>,
}

/// Address space that DPDK needs beside its memory, for its libraries, drivers and threads, in MiB: less than it was ever
/// seen to start with. Where it runs out on the way, DPDK and the C library may abort without a word.
const ADDRESSES_MIB: u64 = 128;

fn check_address_space(limits: &Limits, memory_mib: u32) -> Result<(), EalError> {
    let Some(limit_mib) = limits.address_space_bytes.map(|bytes| bytes >> 20) else { return Ok(()) };
    if limit_mib >= u64::from(memory_mib) + ADDRESSES_MIB {
        return Ok(());
    }
    let reason = format!("DPDK needs {ADDRESSES_MIB} MiB of addresses beside its memory");
    Err(EalError::MemoryRefused { wanted_mib: memory_mib, reason, limit_mib: Some(limit_mib) })
}

/// Whether a start on huge pages can be expected to work, if there are any.
fn suits_huge_pages(config: &EalConfig, bytes: u64, limits: &Limits) -> bool {
    // Without --in-memory the pages would have files.
    !config.ipc
        // DPDK reserves more addresses than there is memory anywhere.
        && limits.address_space_bytes.is_none()
        // It opens a file for each page.
        && limits.descriptors_free() >= DESCRIPTORS + bytes / MemInfo::read().huge_page_bytes.max(1 << 20)
}

/// Decided before the EAL starts, since it cannot be tried twice in one process: huge pages only if they are proven.
fn choose_memory(config: &EalConfig) -> Result<Memory, EalError> {
    let mib = config.memory_mib;
    if mib < MEMORY_MIB_MIN {
        return Err(EalError::MemoryTooSmall { mib, least_mib: MEMORY_MIB_MIN });
    }
    let bytes = u64::from(mib) << 20;
    let huge = match config.huge {
        HugePreference::Auto if !suits_huge_pages(config, bytes, &Limits::read()) => HugePreference::Never,
        asked => asked,
    };
    if huge != HugePreference::Never
        && let Some(turn) = prove_huge_pages(bytes)
    {
        return Ok(Memory { mode: MemoryMode::HugePages { mib }, turn: Some(turn) });
    }
    if config.huge == HugePreference::Require {
        return Err(EalError::NoHugePages {
            wanted_mib: mib,
            free_mib: MemInfo::read().huge_free_bytes() >> 20,
        });
    }
    let available = available_bytes();
    if available < bytes {
        return Err(EalError::NoMemory { wanted_mib: mib, available_mib: available >> 20 });
    }
    Ok(Memory { mode: MemoryMode::Ordinary { mib }, turn: None })
}

const MEMORY_MIB_MIN: u32 = 16;

/// A name that no other process has: two instances must not see each other.
fn prefix() -> String {
    let random = RandomState::new().hash_one(std::process::id()) & 0xffff_ffff;
    format!("dcp_{}_{random:08x}", std::process::id())
}

fn arguments(config: &EalConfig, memory: MemoryMode, core: usize, prefix: &str) -> Vec<String> {
    let mut words = vec!["dcp".to_owned(), format!("--lcores=0@{core}"), format!("--file-prefix={prefix}")];
    if config.pci.is_empty() {
        words.extend(["--no-pci".to_owned(), "--iova-mode=va".to_owned()]);
    }
    // Real devices: which addresses they need, DPDK finds out.
    words.extend(config.pci.iter().map(|address| format!("--allow={address}")));
    match memory {
        // Refused together with --no-huge. Its pages have no files, so they cannot stay behind.
        MemoryMode::HugePages { .. } if config.ipc => words.push("--huge-unlink".to_owned()),
        MemoryMode::HugePages { .. } => words.push("--in-memory".to_owned()),
        MemoryMode::Ordinary { .. } => words.push("--no-huge".to_owned()),
    }
    if matches!(memory, MemoryMode::Ordinary { .. }) && !config.ipc {
        words.push("--no-shconf".to_owned());
    }
    words.extend(["-m".to_owned(), config.memory_mib.to_string()]);
    if !config.telemetry {
        words.push("--no-telemetry".to_owned());
    }
    words.extend(config.extra_args.iter().cloned());
    words
}

/// Runs in the helper thread.
fn init(arguments: Vec<String>, memory: MemoryMode) -> Result<(), EalError> {
    let words: Vec<CString> = arguments.into_iter().filter_map(|word| CString::new(word).ok()).collect();
    // DPDK keeps and reorders the vector: it is never freed, once per process.
    let words: &'static [CString] = words.leak();
    let mut argv: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    let argv: &'static mut [*mut c_char] = argv.leak();
    let count = i32::try_from(words.len()).unwrap_or(i32::MAX);
    let (code, printed) = capture::quietly(|| {
        // SAFETY: `argv` holds `count` strings and a null, all of which live forever.
        unsafe { dpdk_sys::rte_eal_init(count, argv.as_mut_ptr()) }
    });
    if code < 0 {
        return Err(error::translate(&printed, memory, Limits::read()));
    }
    Ok(())
}
