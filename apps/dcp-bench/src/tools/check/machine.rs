//! What the kernel tells about the machine, read and not changed.

use std::fs;
use std::path::Path;

use dcp::dpdk::{Eal, available_cores};
use rustix::fs::{Access, access};
use rustix::process::{Resource, geteuid, getrlimit};
use serde::Serialize;

/// Drivers that the device URIs use, with the URI's scheme.
const DRIVERS: [(&str, &str); 6] = [
    ("net_ring", "loop"),
    ("net_memif", "memif"),
    ("net_tap", "tap"),
    ("net_af_packet", "af_packet"),
    ("net_af_xdp", "af_xdp"),
    ("net_null", "null"),
];
/// PCI drivers through which DPDK takes a device.
const USER_DRIVERS: [&str; 3] = ["vfio-pci", "igb_uio", "uio_pci_generic"];
/// Bits of `CapEff`.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_IPC_LOCK: u32 = 14;

/// All of it.
#[derive(Serialize, Debug)]
pub(super) struct Machine {
    pub(super) dpdk: Dpdk,
    pub(super) memory: Memory,
    pub(super) cores: Cores,
    pub(super) network_cards: Vec<Card>,
    pub(super) permissions: Permissions,
    pub(super) kernel: Kernel,
    /// What says that this is a container; `None` when nothing does.
    pub(super) container: Option<String>,
    pub(super) runtime_dir: RuntimeDir,
}

/// DPDK as this program finds it.
#[derive(Serialize, Debug)]
pub(super) struct Dpdk {
    pub(super) version: String,
    pub(super) drivers: Vec<Driver>,
    /// Of other network drivers, such as mlx5 and ice.
    pub(super) other_network_drivers: usize,
}

/// A driver of DPDK.
#[derive(Serialize, Debug)]
pub(super) struct Driver {
    pub(super) name: &'static str,
    pub(super) uri: &'static str,
    pub(super) present: bool,
}

/// Memory, huge and ordinary.
#[derive(Serialize, Debug)]
pub(super) struct Memory {
    pub(super) available_mib: u64,
    pub(super) huge_pages: Vec<HugePages>,
}

/// Huge pages of one size.
#[derive(Serialize, PartialEq, Eq, Debug)]
pub(super) struct HugePages {
    pub(super) size_kib: u64,
    pub(super) total: u64,
    pub(super) free: u64,
}

/// Cores, by number.
#[derive(Serialize, Debug)]
pub(super) struct Cores {
    pub(super) online: String,
    /// That this process may run on.
    pub(super) available: Vec<usize>,
    pub(super) isolated: Vec<usize>,
    /// Cores' worth of time that the cgroup allows; `None` without a limit.
    pub(super) quota: Option<f64>,
    pub(super) numa_nodes: String,
}

/// A network card on PCI.
#[derive(Serialize, PartialEq, Eq, Debug)]
pub(super) struct Card {
    pub(super) address: String,
    pub(super) driver: Option<String>,
    /// Whether that driver hands it to DPDK.
    pub(super) for_dpdk: bool,
}

/// What this process may do.
#[derive(Serialize, Debug)]
pub(super) struct Permissions {
    pub(super) root: bool,
    pub(super) cap_net_admin: bool,
    pub(super) cap_net_raw: bool,
    pub(super) cap_ipc_lock: bool,
    pub(super) dev_vfio: Access3,
    pub(super) dev_net_tun: Access3,
    /// `None` = no limit.
    pub(super) memlock_bytes: Option<u64>,
}

/// How far a device file can be had.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Access3 {
    Absent,
    Denied,
    Usable,
}

/// Settings of the kernel.
#[derive(Serialize, Debug)]
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) iommu_groups: usize,
    pub(super) vfio_without_iommu: bool,
    pub(super) clock_source: Option<String>,
    /// Whether the processor's counter runs evenly; `None` where the kernel does not say.
    pub(super) steady_tsc: Option<bool>,
    pub(super) frequency_governor: Option<String>,
}

/// Where DPDK puts its files.
#[derive(Serialize, Debug)]
pub(super) struct RuntimeDir {
    pub(super) path: String,
    pub(super) writable: bool,
}

impl Machine {
    /// This machine.
    pub(super) fn read() -> Self {
        Self::read_below(Path::new("/"))
    }

    /// This process on a machine whose files lie below `root`.
    fn read_below(root: &Path) -> Self {
        Self {
            dpdk: Dpdk::read(root),
            memory: Memory { available_mib: available_mib(root), huge_pages: huge_pages(root) },
            cores: Cores::read(root),
            network_cards: cards(root),
            permissions: Permissions::read(root),
            kernel: Kernel::read(root),
            container: container(root),
            runtime_dir: RuntimeDir::of_this_user(),
        }
    }
}

/// A file's text without the white space around it; `None` when it is empty or cannot be read.
fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Names in a directory, sorted; none when it is not there.
fn names(path: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

impl Dpdk {
    fn read(root: &Path) -> Self {
        let files: Vec<String> =
            driver_directories(root).iter().flat_map(|directory| names(root.join(directory))).collect();
        let is_there = |name: &str| files.iter().any(|file| file.starts_with(&format!("librte_{name}.so")));
        let drivers: Vec<Driver> =
            DRIVERS.iter().map(|&(name, uri)| Driver { name, uri, present: is_there(name) }).collect();
        let all = files.iter().filter(|file| file.starts_with("librte_net_") && file.ends_with(".so"));
        let known = drivers.iter().filter(|driver| driver.present).count();
        let other_network_drivers = all.count().saturating_sub(known);
        Self { version: Eal::version().to_owned(), drivers, other_network_drivers }
    }
}

/// Where the EAL that this process has loaded looks for drivers: beside itself, in `dpdk/pmds-…`. Below `root`.
fn driver_directories(root: &Path) -> Vec<String> {
    let maps = text(root.join("proc/self/maps")).unwrap_or_default();
    let Some(library) = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.contains("/librte_eal.so"))
    else {
        return Vec::new();
    };
    let beside = library.rsplit_once('/').map_or("", |(directory, _)| directory).trim_start_matches('/');
    let dpdk = format!("{beside}/dpdk");
    names(root.join(&dpdk))
        .into_iter()
        .filter(|name| name.starts_with("pmds-"))
        .map(|name| format!("{dpdk}/{name}"))
        .collect()
}

fn available_mib(root: &Path) -> u64 {
    let info = text(root.join("proc/meminfo")).unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn huge_pages(root: &Path) -> Vec<HugePages> {
    let directory = root.join("sys/kernel/mm/hugepages");
    let read = |name: String| {
        let size_kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let count = |file: &str| number(directory.join(&name).join(file));
        Some(HugePages { size_kib, total: count("nr_hugepages")?, free: count("free_hugepages")? })
    };
    let mut sizes: Vec<HugePages> = names(&directory).into_iter().filter_map(read).collect();
    sizes.sort_by_key(|pages| pages.size_kib);
    sizes
}

impl Cores {
    fn read(root: &Path) -> Self {
        let system = |file: &str| text(root.join("sys/devices/system").join(file)).unwrap_or_default();
        let isolated = crate::units::parse_cores(&system("cpu/isolated")).map_or(Vec::new(), |cores| cores.0);
        Self {
            online: system("cpu/online"),
            available: available_cores().to_vec(),
            isolated,
            quota: text(root.join("sys/fs/cgroup/cpu.max")).and_then(|text| quota(&text)),
            numa_nodes: system("node/online"),
        }
    }
}

/// Cores' worth of time from `200000 100000`.
fn quota(text: &str) -> Option<f64> {
    let (time, period) = text.split_once(' ')?;
    let (time, period): (f64, f64) = (time.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| time / period)
}

fn cards(root: &Path) -> Vec<Card> {
    let directory = root.join("sys/bus/pci/devices");
    let is_network = |address: &String| {
        text(directory.join(address).join("class")).is_some_and(|class| class.starts_with("0x02"))
    };
    let read = |address: String| {
        let driver = fs::read_link(directory.join(&address).join("driver")).ok();
        let driver = driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let for_dpdk = driver.as_ref().is_some_and(|driver| USER_DRIVERS.contains(&driver.as_str()));
        Card { address, driver, for_dpdk }
    };
    names(&directory).into_iter().filter(is_network).map(read).collect()
}

impl Permissions {
    fn read(root: &Path) -> Self {
        let status = text(root.join("proc/self/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let has = |bit: u32| effective >> bit & 1 == 1;
        Self {
            root: geteuid().is_root(),
            cap_net_admin: has(CAP_NET_ADMIN),
            cap_net_raw: has(CAP_NET_RAW),
            cap_ipc_lock: has(CAP_IPC_LOCK),
            dev_vfio: access_to(&root.join("dev/vfio/vfio")),
            dev_net_tun: access_to(&root.join("dev/net/tun")),
            memlock_bytes: getrlimit(Resource::Memlock).current,
        }
    }
}

fn access_to(path: &Path) -> Access3 {
    if !path.exists() {
        return Access3::Absent;
    }
    match access(path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => Access3::Usable,
        Err(_) => Access3::Denied,
    }
}

impl Kernel {
    fn read(root: &Path) -> Self {
        let system = |file: &str| text(root.join("sys").join(file));
        let processor = text(root.join("proc/cpuinfo")).unwrap_or_default();
        let flags = processor.lines().find(|line| line.starts_with("flags"));
        let unsafe_vfio = system("module/vfio/parameters/enable_unsafe_noiommu_mode");
        Self {
            release: text(root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
            iommu_groups: names(root.join("sys/kernel/iommu_groups")).len(),
            vfio_without_iommu: unsafe_vfio.is_some_and(|value| value == "Y" || value == "1"),
            clock_source: system("devices/system/clocksource/clocksource0/current_clocksource"),
            steady_tsc: flags
                .map(|flags| ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.contains(flag))),
            frequency_governor: system("devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        }
    }
}

fn container(root: &Path) -> Option<String> {
    if root.join(".dockerenv").exists() {
        return Some("/.dockerenv is there: Docker".to_owned());
    }
    if root.join("run/.containerenv").exists() {
        return Some("/run/.containerenv is there: Podman".to_owned());
    }
    if let Some(kind) = text(root.join("run/systemd/container")) {
        return Some(format!("/run/systemd/container says {kind}"));
    }
    let groups = text(root.join("proc/1/cgroup"))?;
    let kind =
        ["kubepods", "docker", "containerd", "lxc", "libpod"].into_iter().find(|it| groups.contains(it))?;
    Some(format!("the first process is in a cgroup of {kind}"))
}

impl RuntimeDir {
    fn of_this_user() -> Self {
        let path = if geteuid().is_root() {
            Path::new("/var/run").to_owned()
        } else {
            std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, Into::into)
        };
        Self { writable: access(&path, Access::WRITE_OK).is_ok(), path: path.display().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A directory of a test's own that goes with it.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dcp-check-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, path: &str, text: &str) -> &Self {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn machine_that_tells_nothing_offers_nothing() {
        let root = Root::new("empty");
        let machine = Machine::read_below(&root.0);
        assert_eq!(machine.memory.huge_pages, []);
        assert_eq!(machine.network_cards, []);
        assert!(machine.dpdk.drivers.iter().all(|driver| !driver.present));
        assert_eq!(
            (machine.permissions.cap_net_admin, machine.permissions.dev_vfio),
            (false, Access3::Absent)
        );
        assert_eq!((machine.container, machine.cores.quota, machine.kernel.steady_tsc), (None, None, None));
    }

    #[test]
    fn huge_pages_are_counted_by_size() {
        let root = Root::new("huge");
        root.file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n")
            .file("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0\n")
            .file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n")
            .file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "60\n");
        let of = |size_kib, total, free| HugePages { size_kib, total, free };
        assert_eq!(huge_pages(&root.0), [of(2048, 64, 60), of(1_048_576, 1, 0)]);
    }

    #[test]
    fn cards_are_told_apart_by_class_and_driver() {
        let root = Root::new("cards");
        let directory = "sys/bus/pci/devices";
        root.file(&format!("{directory}/0000:01:00.0/class"), "0x010802\n")
            .file(&format!("{directory}/0000:3b:00.0/class"), "0x020000\n")
            .file(&format!("{directory}/0000:3b:00.1/class"), "0x020000\n");
        symlink("../../drivers/vfio-pci", root.0.join(directory).join("0000:3b:00.0/driver")).unwrap();
        let card = |address: &str, driver: Option<&str>, for_dpdk| Card {
            address: address.to_owned(),
            driver: driver.map(str::to_owned),
            for_dpdk,
        };
        assert_eq!(
            cards(&root.0),
            [card("0000:3b:00.0", Some("vfio-pci"), true), card("0000:3b:00.1", None, false)]
        );
    }

    #[test]
    fn drivers_are_looked_for_beside_the_loaded_library() {
        let root = Root::new("drivers");
        root.file("proc/self/maps", "7f00-7f01 r-xp 0 08:01 1 /opt/d/lib/librte_eal.so.23.0\n")
            .file("opt/d/lib/dpdk/pmds-23.0/librte_net_memif.so", "")
            .file("opt/d/lib/dpdk/pmds-23.0/librte_net_memif.so.23", "")
            .file("opt/d/lib/dpdk/pmds-23.0/librte_net_ice.so", "");
        let dpdk = Dpdk::read(&root.0);
        let present: Vec<&str> = dpdk.drivers.iter().filter(|it| it.present).map(|it| it.uri).collect();
        assert_eq!((present, dpdk.other_network_drivers), (vec!["memif"], 1));
    }

    #[test]
    fn capabilities_limits_and_container_are_read() {
        let root = Root::new("rights");
        root.file("proc/self/status", "Name:\tx\nCapEff:\t0000000000001000\n")
            .file("sys/fs/cgroup/cpu.max", "150000 100000\n")
            .file("sys/devices/system/cpu/isolated", "2-3\n")
            .file("proc/cpuinfo", "flags\t\t: fpu constant_tsc nonstop_tsc\n")
            .file("proc/1/cgroup", "0::/kubepods/pod1\n");
        let machine = Machine::read_below(&root.0);
        let rights = &machine.permissions;
        assert_eq!((rights.cap_net_admin, rights.cap_net_raw), (true, false));
        assert_eq!((machine.cores.quota, machine.cores.isolated), (Some(1.5), vec![2, 3]));
        assert_eq!(machine.kernel.steady_tsc, Some(true));
        assert!(machine.container.is_some_and(|it| it.contains("kubepods")));
        assert_eq!(quota("max 100000"), None);
    }
}
