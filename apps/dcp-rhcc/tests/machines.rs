//! Signals and actuators of hardware that is not here, on made-up trees: what they read and write, not whether it works.
#![forbid(unsafe_code)]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use common::Scratch;
use dcp_core::{Level, Occupancy, TrafficClass};
use dcp_rhcc::actuator::Actuator;
use dcp_rhcc::actuator::cgroup::Cgroups;
use dcp_rhcc::actuator::mba::Delays;
use dcp_rhcc::actuator::resctrl::Bandwidths;
use dcp_rhcc::root::Root;
use dcp_rhcc::signal::Signal;
use dcp_rhcc::signal::iio::Iio;
use dcp_rhcc::signal::resctrl::Bandwidth;
use dcp_rhcc::target::Target;

const LOCAL: TrafficClass = TrafficClass::Local;

/// A machine with two packages of two processors; processors 0 and 2 lead them.
fn machine(vendor: &str, model: u32, flags: &str) -> (Scratch, Root) {
    let tree = Scratch::new();
    tree.put(
        "proc/cpuinfo",
        &format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: 6\nmodel\t\t: {model}\nflags\t\t: {flags}\n"
        ),
    );
    for cpu in 0..4 {
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        tree.put(&topology, &format!("{}\n", cpu / 2));
        tree.put(&format!("dev/cpu/{cpu}/msr"), "");
        registers(&tree, cpu).set_len(0x8000).expect("room");
    }
    tree.put("sys/devices/system/cpu/online", "0-3\n");
    tree.put("sys/devices/system/cpu/cpufreq/boost", "1\n");
    let root = Root::at(tree.path());
    (tree, root)
}

fn registers(tree: &Scratch, cpu: usize) -> File {
    let path = tree.path().join(format!("dev/cpu/{cpu}/msr"));
    File::options().read(true).write(true).open(path).expect("it was made")
}

fn poke(tree: &Scratch, cpu: usize, register: u64, value: u64) {
    registers(tree, cpu).write_all_at(&value.to_le_bytes(), register * 8).expect("writable");
}

fn peek(tree: &Scratch, cpu: usize, register: u64) -> u64 {
    let mut bytes = [0; 8];
    registers(tree, cpu).read_exact_at(&mut bytes, register * 8).expect("inside");
    u64::from_le_bytes(bytes)
}

/// A process with two threads that run, pinned to processors.
fn process(tree: &Scratch, pid: u32, processors: &str) -> Target {
    let stat = format!("{pid} (a (b) c) R 1 {pid} 1 0 -1 0 0 0 0 0 7 5 0 0 20 0 2 0 4711 0 0\n");
    tree.put(&format!("proc/{pid}/stat"), &stat);
    for thread in [pid, pid + 1] {
        tree.put(&format!("proc/{pid}/task/{thread}/stat"), &stat);
        let status = format!("Name:\ta\nCpus_allowed_list:\t{processors}\n");
        tree.put(&format!("proc/{pid}/task/{thread}/status"), &status);
    }
    Target::process(&Root::at(tree.path()), pid).expect("it was made")
}

// Registers of hostCC (Cascade Lake) and of Linux's uncore driver (Ice Lake).
#[test]
fn io_buffer_is_read_at_the_fullest_stack_of_both_generations() {
    for (model, control, counter, last_stack) in [(85, 0xa5c, 0xa5a, 0xa0), (106, 0xa4e, 0xa4c, 0xd0)] {
        let (tree, root) = machine("GenuineIntel", model, "");
        // Near the end of its 48 bits.
        let near_end = (1u64 << 48) - 1000;
        poke(&tree, 2, counter + last_stack, near_end);
        let mut signal = Iio::open(&root).expect("such a processor");
        assert_eq!(signal.threshold(), Occupancy::new(45));
        for cpu in [0, 2] {
            assert_eq!(peek(&tree, cpu, control), 0x0040_040f);
            assert_eq!(peek(&tree, cpu, control + last_stack), 0x0040_040f);
        }
        assert_eq!(peek(&tree, 1, control), 0, "one processor a package");
        assert_eq!(signal.occupancy(1_000_000).expect("readable"), None, "the first reading begins");
        // 1 ms is 500 000 cycles; 50 entries on average at one stack, 20 at another.
        poke(&tree, 2, counter + last_stack, 25_000_000 - 1000);
        poke(&tree, 0, counter + 0x20, 10_000_000);
        assert_eq!(signal.occupancy(2_000_000).expect("readable"), Some(Occupancy::new(50)));
        assert_eq!(signal.occupancy(2_000_000).expect("readable"), None, "no time has passed");
        drop(signal);
        assert_eq!((peek(&tree, 0, control), peek(&tree, 2, control + last_stack)), (0, 0));
    }
}

#[test]
fn io_buffer_of_unknown_processors_and_counters_in_use_are_left_alone() {
    let (_tree, root) = machine("AuthenticAMD", 85, "");
    let reason = Iio::open(&root).expect_err("AMD has other registers");
    assert!(reason.contains("AuthenticAMD family 6 model 85"), "{reason}");
    let (tree, root) = machine("GenuineIntel", 85, "");
    poke(&tree, 2, 0xa5c + 0x40, 0x40_0102);
    let reason = Iio::open(&root).expect_err("perf counts");
    assert!(reason.contains("perf"), "{reason}");
    assert_eq!((peek(&tree, 2, 0xa5c + 0x40), peek(&tree, 0, 0xa5c)), (0x40_0102, 0));
    fs::remove_file(tree.path().join("dev/cpu/0/msr")).expect("it was there");
    let reason = Iio::open(&root).expect_err("no registers");
    assert!(reason.contains("modprobe msr"), "{reason}");
}

#[test]
fn bandwidth_is_the_busiest_domains_part_of_its_peak() {
    let (tree, root) = machine("GenuineIntel", 85, "");
    assert!(Bandwidth::open(&root, Some(100)).expect_err("not mounted").contains("mount"));
    tree.put("sys/fs/resctrl/info/last_cmd_status", "ok\n");
    assert!(Bandwidth::open(&root, Some(100)).expect_err("no counters").contains("mbm_total_bytes"));
    for domain in ["00", "01"] {
        tree.put(&format!("sys/fs/resctrl/mon_data/mon_L3_{domain}/mbm_total_bytes"), "1000\n");
    }
    assert!(Bandwidth::open(&root, None).expect_err("no peak").contains("--memory-gbs"));
    let mut signal = Bandwidth::open(&root, Some(100)).expect("all there");
    assert_eq!(signal.occupancy(0).expect("readable"), None);
    // 90 MB in 1 ms are 90 GB/s.
    tree.put("sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "Unavailable\n");
    tree.put("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "90001000\n");
    assert_eq!(signal.occupancy(1_000_000).expect("readable"), Some(Occupancy::new(90)));
}

/// A tree with resctrl, whose default group has this line.
fn resctrl(line: &str, info: &[(&str, &str)]) -> (Scratch, Root) {
    let (tree, root) = machine("GenuineIntel", 85, "");
    tree.put("sys/fs/resctrl/schemata", &format!("    L3:0=7ff;1=7ff\n{line}\n"));
    tree.put("sys/fs/resctrl/tasks", "");
    for (name, text) in info {
        tree.put(&format!("sys/fs/resctrl/info/MB/{name}"), text);
    }
    (tree, root)
}

/// Lines of the group's schemata at all levels, then after lifting.
fn bandwidth_lines(tree: &Scratch, root: &Root, peak: Option<u32>) -> Vec<String> {
    let mut actuator = Bandwidths::open(root, &[LOCAL], peak).expect("all there");
    let group = format!("sys/fs/resctrl/dcp-rhcc-{}-local", std::process::id());
    let mut lines = Vec::new();
    for level in Level::ALL {
        actuator.apply(LOCAL, level).expect("writable");
        lines.push(tree.text(&format!("{group}/schemata")).trim().to_owned());
    }
    // A made-up group has files of its own, so it is not removed; a real one is.
    let problems = actuator.lift(root);
    assert!(problems.iter().all(|it| it.contains("not empty")), "{problems:?}");
    lines.push(tree.text(&format!("{group}/schemata")).trim().to_owned());
    lines
}

#[test]
fn bandwidth_is_limited_in_the_machines_own_numbers() {
    let (tree, root) =
        resctrl("    MB:0=100;1=100", &[("min_bandwidth", "10\n"), ("bandwidth_gran", "10\n")]);
    let expected = ["MB:0=100;1=100", "MB:0=80;1=80", "MB:0=60;1=60", "MB:0=40;1=40", "MB:0=20;1=20"];
    let lines = bandwidth_lines(&tree, &root, None);
    assert_eq!((&lines[..5], lines[5].as_str()), (&expected.map(String::from)[..], "MB:0=100;1=100"));
    // Steps that do not divide the levels are rounded up, as the hardware does.
    let (tree, root) = resctrl("MB:0=100", &[("min_bandwidth", "30\n"), ("bandwidth_gran", "25\n")]);
    let lines = bandwidth_lines(&tree, &root, None);
    assert_eq!(lines, ["MB:0=100", "MB:0=100", "MB:0=75", "MB:0=50", "MB:0=30", "MB:0=100"]);
    // AMD: eighths of a GB/s.
    let (tree, root) = resctrl("    MB:0=2048;1=2048", &[]);
    assert!(Bandwidths::open(&root, &[LOCAL], None).expect_err("no peak").contains("--memory-gbs"));
    let lines = bandwidth_lines(&tree, &root, Some(100));
    assert_eq!((lines[1].as_str(), lines[4].as_str()), ("MB:0=640;1=640", "MB:0=160;1=160"));
    assert_eq!((lines[0].as_str(), lines[5].as_str()), ("MB:0=2048;1=2048", "MB:0=2048;1=2048"));
    // The kernel's own control: MB/s.
    let (tree, root) = resctrl("MB:0=4294967295", &[]);
    let lines = bandwidth_lines(&tree, &root, Some(100));
    assert_eq!((lines[1].as_str(), lines[5].as_str()), ("MB:0=80000", "MB:0=4294967295"));
    let (_tree, root) = resctrl("", &[]);
    assert!(Bandwidths::open(&root, &[LOCAL], None).expect_err("no MB line").contains("MB:"));
}

#[test]
fn threads_join_a_bandwidth_group_and_go_back_where_they_were() {
    let (tree, root) = resctrl("MB:0=100", &[]);
    let target = process(&tree, 70, "0-1");
    tree.put("proc/70/cpu_resctrl_groups", "res:/others\nmon:\n");
    tree.put("sys/fs/resctrl/others/tasks", "");
    let mut actuator = Bandwidths::open(&root, &[LOCAL], None).expect("all there");
    actuator.adopt(LOCAL, &target).expect("writable");
    let list = actuator.entrances(LOCAL).pop().expect("its list");
    // A plain file keeps what was written last.
    assert_eq!(fs::read_to_string(&list).expect("written"), "71");
    actuator.lift(&root);
    assert_eq!(tree.text("sys/fs/resctrl/others/tasks"), "71");
}

#[test]
fn delays_are_set_for_the_cores_of_the_program_and_taken_back() {
    let (tree, root) = machine("GenuineIntel", 85, "fpu mba vmx");
    poke(&tree, 2, 0xc8f, 0x0000_0003_0000_0005);
    let mut actuator = Delays::open(&root).expect("all there");
    let error = actuator.adopt(LOCAL, &process(&tree, 70, "0-3")).expect_err("it runs everywhere");
    assert!(error.to_string().contains("taskset"), "{error}");
    actuator.adopt(LOCAL, &process(&tree, 80, "2-3")).expect("pinned");
    assert_eq!(peek(&tree, 2, 0xc8f), 0x0000_0001_0000_0005, "monitoring keeps its half");
    assert_eq!((peek(&tree, 3, 0xc8f), peek(&tree, 0, 0xc8f)), (1 << 32, 0));
    let delays = Level::ALL.map(|level| {
        actuator.apply(LOCAL, level).expect("writable");
        peek(&tree, 2, 0xd51)
    });
    assert_eq!(delays, [0, 20, 40, 60, 80]);
    assert_eq!(actuator.lift(&root), Vec::<String>::new());
    assert_eq!((peek(&tree, 2, 0xd51), peek(&tree, 2, 0xc8f)), (0, 0x0000_0003_0000_0005));
    assert_eq!((peek(&tree, 3, 0xd51), peek(&tree, 3, 0xc8f)), (0, 0));
}

#[test]
fn delays_are_not_touched_where_resctrl_or_another_processor_is() {
    let (_tree, root) = machine("AuthenticAMD", 1, "mba");
    assert!(Delays::open(&root).expect_err("AMD").contains("Intel"));
    let (tree, root) = machine("GenuineIntel", 85, "mba");
    tree.put("sys/fs/resctrl/schemata", "MB:0=100\n");
    assert!(Delays::open(&root).expect_err("resctrl").contains("resctrl"));
}

/// A tree with cgroup version 2, this process in `/user/app`.
fn version_2(subtree: &str) -> (Scratch, Root) {
    let (tree, root) = machine("GenuineIntel", 85, "");
    tree.put("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    tree.put("proc/self/cgroup", "0::/user/app\n");
    tree.put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n");
    tree.put("sys/fs/cgroup/user/cgroup.subtree_control", subtree);
    tree.put("sys/fs/cgroup/user/app/cgroup.subtree_control", "");
    tree.put("sys/fs/cgroup/cgroup.subtree_control", "");
    (tree, root)
}

#[test]
fn version_2_group_is_made_where_the_controller_is_given_on() {
    let (tree, root) = version_2("memory cpu\n");
    let target = process(&tree, 70, "0-1");
    tree.put("proc/70/cgroup", "0::/user/app\n");
    tree.put("sys/fs/cgroup/user/app/cgroup.procs", "");
    let mut actuator = Cgroups::open(&root, &[LOCAL]).expect("all there");
    let group = format!("sys/fs/cgroup/user/dcp-rhcc-{}-local", std::process::id());
    assert_eq!(tree.text(&format!("{group}/cpu.max")), "max 10000");
    actuator.adopt(LOCAL, &target).expect("writable");
    assert_eq!(tree.text(&format!("{group}/cgroup.procs")), "70");
    // Two threads that run on two processors: 20 % are 4 ms of 10.
    let quotas = Level::ALL.map(|level| {
        actuator.apply(LOCAL, level).expect("writable");
        tree.text(&format!("{group}/cpu.max"))
    });
    assert_eq!(quotas, ["max 10000", "16000 10000", "12000 10000", "8000 10000", "4000 10000"]);
    actuator.lift(&root);
    assert_eq!(tree.text(&format!("{group}/cpu.max")), "max 10000");
    assert_eq!(tree.text("sys/fs/cgroup/user/app/cgroup.procs"), "70");
}

#[test]
fn version_2_without_the_controller_says_what_to_do() {
    let (_tree, root) = version_2("memory\n");
    let reason = Cgroups::open(&root, &[LOCAL]).expect_err("no controller");
    assert!(reason.contains("echo +cpu > "), "{reason}");
}

#[test]
fn quota_of_someone_elses_group_is_what_levels_are_a_part_of_and_comes_back() {
    let (tree, root) = version_2("cpu\n");
    process(&tree, 70, "0-3");
    tree.put("sys/fs/cgroup/user/app/cgroup.procs", "70\n");
    tree.put("sys/fs/cgroup/user/app/cpu.max", "50000 100000\n");
    let mut actuator = Cgroups::open(&root, &[]).expect("all there");
    let app = tree.path().join("sys/fs/cgroup/user/app");
    actuator.adopt(LOCAL, &Target::Cgroup(app)).expect("readable");
    actuator.apply(LOCAL, Level::DEEPEST).expect("writable");
    assert_eq!(tree.text("sys/fs/cgroup/user/app/cpu.max"), "1000 10000");
    assert_eq!(actuator.lift(&root), Vec::<String>::new());
    assert_eq!(tree.text("sys/fs/cgroup/user/app/cpu.max"), "50000 100000");
}
