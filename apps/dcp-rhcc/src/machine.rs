//! What this machine is: its processor, its NUMA nodes, its processor lists.

use std::collections::BTreeSet;

use crate::root::{Root, names};

/// What `/proc/cpuinfo` says about the first processor.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Cpu {
    /// `GenuineIntel`, `AuthenticAMD` …
    pub vendor: String,
    /// Family.
    pub family: u32,
    /// Model.
    pub model: u32,
    /// What it can do.
    pub flags: BTreeSet<String>,
}

impl Cpu {
    /// Reads it; what is not said stays empty.
    pub fn read(root: &Root) -> Self {
        let text = root.read("proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.split(':').next().is_some_and(|it| it.trim() == name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let number = |name: &str| field(name).and_then(|it| it.parse().ok()).unwrap_or(0);
        Self {
            vendor: field("vendor_id").unwrap_or_default(),
            family: number("cpu family"),
            model: number("model"),
            flags: field("flags").unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        }
    }
}

/// NUMA nodes with processors or memory; 1 where the kernel does not say.
pub fn nodes(root: &Root) -> usize {
    let is_node =
        |name: &String| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
    names(&root.path("sys/devices/system/node")).iter().filter(|name| is_node(name)).count().max(1)
}

/// One processor of each package, the lowest number.
pub fn package_leaders(root: &Root) -> Vec<usize> {
    let cpus = names(&root.path("sys/devices/system/cpu"));
    let mut numbers: Vec<usize> =
        cpus.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    numbers.sort_unstable();
    let mut packages = BTreeSet::new();
    let package = |cpu: usize| {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        root.read(path).ok().and_then(|text| text.trim().parse::<i64>().ok())
    };
    numbers.retain(|&cpu| package(cpu).is_some_and(|it| packages.insert(it)));
    numbers
}

/// Processors that are online.
pub fn online(root: &Root) -> BTreeSet<usize> {
    root.read("sys/devices/system/cpu/online").ok().and_then(|text| parse_cpus(&text)).unwrap_or_default()
}

/// A list like `0-3,8`.
pub fn parse_cpus(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Processors that the kernel can have.
const CPUS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_and_numbers() {
        let cpus = |text| parse_cpus(text).map(|it| it.into_iter().collect::<Vec<_>>());
        assert_eq!(cpus("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpus(""), Some(vec![]));
        for wrong in ["a", "3-1", "0-99999", "1-"] {
            assert_eq!(cpus(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_machine_has_a_processor_and_a_node() {
        let root = Root::machine();
        assert!(nodes(&root) >= 1);
        assert!(!online(&root).is_empty());
        assert!(!Cpu::read(&root).vendor.is_empty() || cfg!(not(target_arch = "x86_64")));
    }
}
