//! The findings in words, and what to do about them.

use std::fmt::Write;

use super::LoopTrial;
use super::machine::{Access3, Card, Cores, HugePages, Kernel, Machine, Memory, Permissions};

/// All sections, the verdict last.
pub(super) fn all(machine: &Machine, trial: &LoopTrial) -> String {
    let mut text = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        for (index, line) in lines.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            writeln!(text, "{title:<13} {line}").expect("a String takes any text");
        }
    };
    section("DPDK", dpdk(machine));
    section("huge pages", huge_pages(&machine.memory));
    section("memory", vec![format!("{} MiB can be had", machine.memory.available_mib)]);
    section("cores", cores(&machine.cores));
    section("cards", cards(&machine.network_cards));
    section("permissions", permissions(&machine.permissions));
    section("kernel", kernel(&machine.kernel));
    let none = || "nothing says that this is one".to_owned();
    section("container", vec![machine.container.clone().unwrap_or_else(none)]);
    section("runtime dir", runtime_dir(machine));
    section("loop", verdict(trial));
    section("best here", best_commands(machine, trial));
    text
}

fn dpdk(machine: &Machine) -> Vec<String> {
    let list = |present: bool| {
        let drivers = machine.dpdk.drivers.iter().filter(|driver| driver.present == present);
        drivers.map(|driver| format!("{} ({})", driver.name, driver.uri)).collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![machine.dpdk.version.clone()];
    let (there, missing) = (list(true), list(false));
    if there.is_empty() {
        lines.push("no driver was found beside the library: scripts/setup installs them".to_owned());
        return lines;
    }
    lines.push(format!("drivers: {there}; {} others for network cards", machine.dpdk.other_network_drivers));
    if !missing.is_empty() {
        lines.push(format!("not there: {missing}"));
    }
    lines
}

fn huge_pages(memory: &Memory) -> Vec<String> {
    let line = |pages: &HugePages| {
        let size = if pages.size_kib.is_multiple_of(1024) {
            format!("{} MiB", pages.size_kib / 1024)
        } else {
            format!("{} KiB", pages.size_kib)
        };
        format!("{} of {size}, {} free", pages.total, pages.free)
    };
    let mut lines: Vec<String> = memory.huge_pages.iter().map(line).collect();
    if lines.is_empty() {
        return vec!["none: this kernel has no huge pages; runs use ordinary ones, and work".to_owned()];
    }
    if memory.huge_pages.iter().all(|pages| pages.free * pages.size_kib < ENOUGH_KIB) {
        lines.push(
            "too few for a run, which then uses ordinary pages, and works; to have 1 GiB: as root, \
             sysctl -w vm.nr_hugepages=512"
                .to_owned(),
        );
    }
    lines
}

/// What a small run takes, with its margin.
const ENOUGH_KIB: u64 = 128 << 10;

fn cores(cores: &Cores) -> Vec<String> {
    let count = cores.available.len();
    let mut lines = vec![format!(
        "{count} available: {}; online: {}; NUMA nodes: {}",
        list(&cores.available),
        or_unknown(&cores.online),
        or_unknown(&cores.numa_nodes)
    )];
    lines.push(if cores.isolated.is_empty() {
        "none isolated: the kernel may interrupt a run (boot with isolcpus=… for steady results)".to_owned()
    } else {
        format!("isolated: {}; give them with --cores", list(&cores.isolated))
    });
    if let Some(quota) = cores.quota {
        lines.push(format!(
            "the cgroup allows {quota:.2} cores' worth of time: a polling thread that uses it up is stopped for a while"
        ));
    }
    if count < 3 {
        lines.push(
            "--threads split wants three; with fewer, --threads inline (the default) is steadier".to_owned(),
        );
    }
    lines
}

fn cards(cards: &[Card]) -> Vec<String> {
    if cards.is_empty() {
        return vec!["none on PCI; software devices (memif, af_packet, tap) need none".to_owned()];
    }
    let line = |card: &Card| {
        let address = &card.address;
        match (&card.driver, card.for_dpdk) {
            (Some(driver), true) => format!("{address} is bound to {driver}: --device pci:{address}"),
            (Some(driver), false) => format!(
                "{address} is the kernel's, by {driver}: usable through af_packet; or for DPDK alone, and then lost to \
                 the kernel, after dpdk-devbind.py -b vfio-pci {address}"
            ),
            (None, _) => format!("{address} has no driver: dpdk-devbind.py -b vfio-pci {address}"),
        }
    };
    cards.iter().map(line).collect()
}

fn permissions(rights: &Permissions) -> Vec<String> {
    let yes_no = |has: bool| if has { "yes" } else { "no" };
    let file = |access: Access3| match access {
        Access3::Absent => "is not there",
        Access3::Denied => "may not be opened by this user",
        Access3::Usable => "can be opened",
    };
    let memlock = match rights.memlock_bytes {
        None => "no limit on locked memory".to_owned(),
        Some(bytes) => {
            format!("locked memory up to {} KiB (ulimit -l); network cards need more", bytes >> 10)
        }
    };
    let user = if rights.root { "root" } else { "not root" };
    vec![
        format!(
            "{user}; CAP_NET_RAW (af_packet): {}; CAP_NET_ADMIN (tap, af_xdp): {}; CAP_IPC_LOCK: {}",
            yes_no(rights.cap_net_raw),
            yes_no(rights.cap_net_admin),
            yes_no(rights.cap_ipc_lock)
        ),
        format!(
            "/dev/vfio/vfio (network cards) {}; /dev/net/tun (tap) {}",
            file(rights.dev_vfio),
            file(rights.dev_net_tun)
        ),
        memlock,
    ]
}

fn kernel(kernel: &Kernel) -> Vec<String> {
    let iommu = match (kernel.iommu_groups, kernel.vfio_without_iommu) {
        (0, false) => "no IOMMU: vfio needs one, or its mode without (enable_unsafe_noiommu_mode)".to_owned(),
        (0, true) => "no IOMMU; vfio may work without one".to_owned(),
        (groups, _) => format!("IOMMU with {groups} groups"),
    };
    let tsc = match kernel.steady_tsc {
        Some(true) => "the time-stamp counter is steady",
        Some(false) => "the time-stamp counter is not said to be steady: times may drift",
        None => "nothing is said about a time-stamp counter",
    };
    let clock = kernel.clock_source.as_deref().unwrap_or("unknown");
    let mut lines =
        vec![format!("Linux {}; {iommu}", or_unknown(&kernel.release)), format!("clock: {clock}; {tsc}")];
    match kernel.frequency_governor.as_deref() {
        None | Some("performance") => {}
        Some(governor) => lines.push(format!(
            "frequency governor {governor}: for steady results, as root, cpupower frequency-set -g performance"
        )),
    }
    lines
}

fn runtime_dir(machine: &Machine) -> Vec<String> {
    let directory = &machine.runtime_dir;
    let path = &directory.path;
    vec![if directory.writable {
        format!("{path} can be written")
    } else {
        format!(
            "{path} cannot be written: set XDG_RUNTIME_DIR to a directory of yours, or run as another user"
        )
    }]
}

fn verdict(trial: &LoopTrial) -> Vec<String> {
    match (&trial.memory, &trial.reason) {
        (Some(memory), _) => vec![format!("DPDK was started, on {memory}: runs in one process work")],
        (None, reason) => {
            vec![format!("DPDK does not start: {}", reason.as_deref().unwrap_or("it does not say why"))]
        }
    }
}

/// What to run here, the plainest first.
pub(super) fn best_commands(machine: &Machine, trial: &LoopTrial) -> Vec<String> {
    if !trial.starts {
        return Vec::new();
    }
    let mut commands = vec![single(&machine.cores)];
    let has = |uri: &str| machine.dpdk.drivers.iter().any(|driver| driver.uri == uri && driver.present);
    if has("memif") {
        commands.push(
            "dcp-bench write --server --device memif:/tmp/dcp.sock --ip 10.0.0.1/24 & \
             dcp-bench write localhost --device memif:/tmp/dcp.sock --ip 10.0.0.2/24"
                .to_owned(),
        );
    }
    let cards = machine.network_cards.iter().filter(|card| card.for_dpdk);
    if machine.permissions.dev_vfio == Access3::Usable {
        commands.extend(
            cards.map(|card| {
                format!("dcp-bench write --server --device pci:{} --ip 10.0.0.1/24", card.address)
            }),
        );
    }
    commands
}

/// The run in one process: on isolated cores where there are any, on three where there are three to spare.
fn single(cores: &Cores) -> String {
    let base = "dcp-bench write --size 1M";
    let isolated: Vec<usize> =
        cores.isolated.iter().copied().filter(|core| cores.available.contains(core)).take(3).collect();
    let enough = |count: f64| cores.quota.is_none_or(|quota| quota >= count);
    match isolated[..] {
        [_, _, _] if enough(3.0) => format!("{base} --threads split --cores {}", list(&isolated)),
        [first, ..] => format!("{base} --cores {first}"),
        [] if cores.available.len() > 3 && enough(3.0) => format!("{base} --threads split"),
        [] => base.to_owned(),
    }
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_cores(available: usize, isolated: &[usize], quota: Option<f64>) -> Cores {
        Cores {
            online: String::new(),
            available: (0..available).collect(),
            isolated: isolated.to_vec(),
            quota,
            numa_nodes: String::new(),
        }
    }

    #[test]
    fn best_command_uses_the_cores_that_are_there() {
        let base = "dcp-bench write --size 1M";
        for (cores, end) in [
            (with_cores(2, &[], None), ""),
            (with_cores(8, &[], None), " --threads split"),
            (with_cores(8, &[], Some(1.5)), ""),
            (with_cores(8, &[5, 6, 7], None), " --threads split --cores 5,6,7"),
            (with_cores(8, &[5], None), " --cores 5"),
            (with_cores(2, &[5], None), ""),
        ] {
            assert_eq!(single(&cores), format!("{base}{end}"), "{cores:?}");
        }
    }

    #[test]
    fn missing_huge_pages_are_no_obstacle_and_come_with_a_command() {
        let pages = |total, free| vec![HugePages { size_kib: 2048, total, free }];
        let few = huge_pages(&Memory { available_mib: 1, huge_pages: pages(4, 4) });
        assert!(few[0] == "4 of 2 MiB, 4 free" && few[1].contains("sysctl -w vm.nr_hugepages"), "{few:?}");
        assert_eq!(huge_pages(&Memory { available_mib: 1, huge_pages: pages(512, 512) }).len(), 1);
        assert!(huge_pages(&Memory { available_mib: 1, huge_pages: vec![] })[0].contains("ordinary"));
    }

    #[test]
    fn cards_come_with_the_way_to_them() {
        let card = |driver: Option<&str>, for_dpdk| Card {
            address: "0000:3b:00.0".to_owned(),
            driver: driver.map(str::to_owned),
            for_dpdk,
        };
        let lines = cards(&[card(Some("vfio-pci"), true), card(Some("ice"), false), card(None, false)]);
        for (line, words) in lines.iter().zip(["--device pci:0000:3b:00.0", "by ice", "no driver"]) {
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn machine_where_dpdk_does_not_start_gets_no_command() {
        let trial = LoopTrial { starts: false, memory: None, reason: Some("no memory".to_owned()) };
        let machine = Machine::read();
        assert!(best_commands(&machine, &trial).is_empty());
        assert!(all(&machine, &trial).contains("DPDK does not start: no memory"));
    }
}
