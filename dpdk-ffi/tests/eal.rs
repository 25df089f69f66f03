//! Starting and stopping DPDK. Whatever really starts it does so in a process of its own: this program, run again for the
//! test `child` with a case in the environment.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs};

use dpdk_ffi::{
    Eal, EalConfig, EalError, FabricConfig, HugePreference, Mbuf, MbufBatch, Pool, PoolConfig, Port,
    PortConfig, available_cores, create_links, pin, register_thread,
};

const CASE: &str = "DCP_FFI_CASE";

#[test]
fn child() {
    match env::var(CASE).unwrap_or_default().as_str() {
        "" => {}
        "start" => drop(start(&[]).unwrap()),
        "few-descriptors" => println!("sentence: {}", start(&[]).unwrap_err()),
        "kill" => kill(small()),
        "kill-ipc" => kill(EalConfig { ipc: true, ..small() }),
        "telemetry" => drop(Eal::start(EalConfig { telemetry: true, ..small() }).map(|_eal| {
            println!("sentence: {}", find_telemetry().unwrap().display());
        })),
        "bad-argument" => println!("sentence: {}", start(&["--nonsense"]).unwrap_err()),
        "bad-value" => println!("sentence: {}", start(&["--huge-unlink"]).unwrap_err()),
        "twice" => twice(),
        "affinity" => affinity(),
        "everything" => everything(),
        "vdevs" => vdevs(),
        "memif" => memif(),
        other => panic!("no case {other}"),
    }
}

fn small() -> EalConfig {
    EalConfig { memory_mib: 64, huge: HugePreference::Never, ..EalConfig::default() }
}

fn start(extra_args: &[&str]) -> Result<Eal, EalError> {
    Eal::start(EalConfig { extra_args: extra_args.iter().map(|&it| it.to_owned()).collect(), ..small() })
}

fn kill(config: EalConfig) {
    let eal = Eal::start(config).unwrap();
    println!("ready: {}", eal.memory());
    std::thread::park();
}

/// DPDK's telemetry socket, in root's place or the private directory of this process.
fn find_telemetry() -> Option<std::path::PathBuf> {
    let ours = format!("dcp_{}_", std::process::id());
    let entries =
        |directory: &Path| fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let is_ours = |path: &std::path::PathBuf| path.to_string_lossy().contains(&ours);
    let private = entries(&env::temp_dir())
        .filter(is_ours)
        .flat_map(|path| entries(&path.join("dpdk")).collect::<Vec<_>>());
    let directories = entries(Path::new("/var/run/dpdk")).chain(private).filter(is_ours);
    directories.map(|path| path.join("dpdk_telemetry.v2")).find(|path| path.exists())
}

fn twice() {
    let first = start(&[]).unwrap();
    assert_eq!(start(&[]).unwrap_err(), EalError::AlreadyStarted);
    drop(first);
    assert_eq!(start(&[]).unwrap_err(), EalError::AlreadyStarted);
}

fn affinity() {
    let before = fs::read_to_string("/proc/thread-self/status").unwrap();
    let _eal = start(&[]).unwrap();
    let after = fs::read_to_string("/proc/thread-self/status").unwrap();
    let allowed =
        |status: &str| status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap().to_owned();
    assert_eq!(allowed(&before), allowed(&after));
}

fn everything() {
    let eal = start(&[]).unwrap();
    let guard = register_thread(&eal).unwrap();
    let nested = register_thread(&eal).unwrap();
    pin(available_cores()[0]).unwrap();
    let pool = Pool::new(&eal, PoolConfig::header("all", 255)).unwrap();
    let (mut host, switch) =
        create_links(&eal, FabricConfig { links: 1, ring_size: 8 }).unwrap().pop().unwrap();
    let mut batch = MbufBatch::new();
    batch.push(Mbuf::from_bytes(&pool, b"stale").unwrap()).unwrap();
    host.tx.burst(&mut batch);
    drop((eal, guard, nested, pool, switch, host));
}

fn vdevs() {
    let eal = start(&[]).unwrap();
    for (name, arguments) in
        [("net_nonsense0", ""), ("net_af_packet0", "iface=nosuch0"), ("net_memif0", "role=x")]
    {
        println!("sentence: {}", Port::create(&eal, name, arguments).unwrap_err());
    }
    println!("sentence: {}", Port::by_name(&eal, "net_tap9").unwrap_err());
    let pool = Pool::new(&eal, PoolConfig::frames("null", 511, 2048)).unwrap();
    let config = PortConfig { queues: 1, rx_ring_size: 64, tx_ring_size: 64, mtu: None, pool: pool.clone() };
    for _ in 0..3 {
        let port = Port::create(&eal, "net_null0", "size=64").unwrap();
        assert_eq!(port.driver(), "net_null");
        let mut pair = port.start(&config).unwrap().pop().unwrap();
        assert!(pair.link_is_up());
        let mut batch = MbufBatch::new();
        assert!(pair.rx.burst(&mut batch) > 0);
        assert_eq!(batch.as_slice()[0].frame_len(), 64);
        let sent = batch.len();
        assert_eq!(pair.tx.burst(&mut batch), sent);
        drop(pair);
        assert_eq!(pool.in_use(), 0);
    }
    let port = Port::create(&eal, "net_null0", "").unwrap();
    println!("sentence: {}", port.start(&PortConfig { queues: 9999, ..config }).unwrap_err());
}

/// Server and client in one process: frames go through the shared memory all the same.
fn memif() {
    let eal = Eal::start(EalConfig { ipc: true, ..small() }).unwrap();
    let _guard = register_thread(&eal).unwrap();
    let pool = Pool::new(&eal, PoolConfig::frames("memif", 1023, 4096)).unwrap();
    let config =
        PortConfig { queues: 1, rx_ring_size: 256, tx_ring_size: 256, mtu: None, pool: pool.clone() };
    let socket = env::temp_dir().join(format!("dcp-ffi-memif-{}", std::process::id()));
    let port = |name: &str, role: &str| {
        let arguments = format!("role={role},socket={},socket-abstract=no,bsize=4096", socket.display());
        Port::create(&eal, name, &arguments).unwrap().start(&config).unwrap().pop().unwrap()
    };
    let mut server = port("net_memif0", "server");
    let mut client = port("net_memif1", "client");
    let clock = dpdk_ffi::Clock::calibrate();
    while !(server.link_is_up() && client.link_is_up()) {
        assert!(clock.now_ns() < 5_000_000_000, "no link");
    }
    let mut gate = dpdk_ffi::InterruptGate::close(&eal);
    (0..20).for_each(|_| gate.let_through());
    let second = dpdk_ffi::InterruptGate::close(&eal);
    (0..20).for_each(|_| gate.let_through());
    drop(second);
    let mut batch = MbufBatch::new();
    for number in 0..64 {
        batch.push(Mbuf::from_bytes(&pool, &[number; 3000]).unwrap()).unwrap();
    }
    while !batch.is_empty() {
        client.tx.burst(&mut batch);
    }
    let mut got = MbufBatch::new();
    while got.len() < 64 {
        server.rx.burst(&mut got);
        assert!(clock.now_ns() < 10_000_000_000, "{} frames came", got.len());
    }
    let mut bytes = [0; 3000];
    for (number, frame) in (0..).zip(&got) {
        frame.copy_to_slice(0, &mut bytes).unwrap();
        assert_eq!(bytes, [number; 3000]);
    }
    drop((got, server, client));
    assert_eq!(pool.in_use(), 0);
}

fn command(case: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(CASE, case);
    command
}

/// Runs a case; it must end well, leave nothing, and print nothing but its own sentences.
fn run(case: &str) -> Vec<String> {
    let child = command(case).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let output: Output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{case}: {text}");
    assert!(!text.contains("EAL") && !text.contains("Usage"), "{case}: {text}");
    assert_nothing_left(id);
    let sentences = text.lines().filter_map(|line| Some(line.split_once("sentence: ")?.1.to_owned()));
    sentences.collect()
}

fn assert_nothing_left(process: u32) {
    let ours = format!("dcp_{process}_");
    for directory in ["/tmp", "/tmp/dpdk", "/var/run/dpdk", "/dev/hugepages", "/dev/shm", "/var/tmp"] {
        let Ok(entries) = fs::read_dir(Path::new(directory)) else { continue };
        for entry in entries {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().contains(&ours), "{directory}/{} is left", name.display());
        }
    }
}

#[test]
fn plain_start_prints_nothing_and_leaves_nothing() {
    assert!(run("start").is_empty());
}

#[test]
fn telemetry_is_there_while_the_process_is() {
    assert!(run("telemetry")[0].ends_with("dpdk_telemetry.v2"));
}

#[test]
fn killed_process_leaves_nothing() {
    for case in ["kill", "kill-ipc"] {
        let mut child: Child = command(case).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.lines().any(|line| line.unwrap().contains("ready: 64 MiB of ordinary pages")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_nothing_left(child.id());
    }
}

#[test]
fn next_start_removes_what_a_killed_one_left() {
    // Above the largest pid that Linux gives.
    let left = [env::temp_dir().join("dcp_999999999_abcdef"), env::temp_dir().join("dcp_999999999_0123abcd")];
    let other = env::temp_dir().join(format!("dcp_{}_0123abcd", std::process::id()));
    left.iter()
        .chain([&other])
        .for_each(|path| fs::create_dir_all(path.join("dpdk/dcp_1_00000000")).unwrap());
    run("start");
    assert!(other.exists(), "its owner lives");
    fs::remove_dir_all(other).unwrap();
    left.iter().for_each(|path| assert!(!path.exists(), "{}", path.display()));
}

#[test]
fn too_few_descriptors_are_refused_before_the_start() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 20 && exec \"$@\"", "sh"]).arg(env::current_exe().unwrap());
    shell.args(["--exact", "child", "--nocapture"]).env(CASE, "few-descriptors");
    let text = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    assert!(text.contains("of a limit of 20: raise it, for example with ulimit -n 1024"), "{text}");
}

#[test]
fn eight_instances_start_at_once() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| run("start"));
        }
    });
}

#[test]
fn refused_arguments_become_one_sentence() {
    for (case, word) in [("bad-argument", "--nonsense"), ("bad-value", "huge-unlink")] {
        let sentences = run(case);
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        assert!(sentences[0].contains(word), "{sentences:?}");
    }
}

#[test]
fn second_start_is_refused_even_after_the_first_ended() {
    run("twice");
}

#[test]
fn affinity_of_the_caller_stays() {
    run("affinity");
}

#[test]
fn process_ends_well_with_frames_in_a_ring() {
    run("everything");
}

#[test]
fn devices_that_do_not_come_up_are_named() {
    let sentences = run("vdevs");
    let words = ["net_nonsense0", "net_af_packet0", "EalConfig::ipc", "net_tap9", "9999"];
    assert_eq!(sentences.len(), words.len(), "{sentences:?}");
    for (sentence, word) in sentences.iter().zip(words) {
        println!("{sentence}");
        assert!(sentence.contains(word), "{sentence}");
    }
}

#[test]
fn memif_carries_jumbo_frames_and_closes() {
    run("memif");
}

#[test]
fn cores_that_do_not_exist_are_refused_with_those_that_do() {
    let error = Eal::start(EalConfig { cores: vec![available_cores()[0], 4095], ..small() }).unwrap_err();
    assert!(matches!(error, EalError::NoSuchCore { core: 4095, .. }), "{error}");
    assert!(error.to_string().contains(&available_cores()[0].to_string()));
    assert!(pin(4095).unwrap_err().to_string().contains("4095"));
}

#[test]
fn memory_that_is_not_there_is_refused_before_the_start() {
    let error = Eal::start(EalConfig { memory_mib: u32::MAX, ..small() }).unwrap_err();
    assert!(matches!(error, EalError::NoMemory { wanted_mib: u32::MAX, .. }), "{error}");
    let error = Eal::start(EalConfig { memory_mib: 1, ..small() }).unwrap_err();
    assert!(matches!(error, EalError::MemoryTooSmall { mib: 1, .. }), "{error}");
    let config = EalConfig { memory_mib: u32::MAX, huge: HugePreference::Require, ..small() };
    let error = Eal::start(config).unwrap_err();
    assert!(matches!(error, EalError::NoHugePages { .. }), "{error}");
}
