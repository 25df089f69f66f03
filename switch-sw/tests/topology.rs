//! Descriptions of networks: what is refused, and which way frames go.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use dcp_pipeline::{LinkRate, LoadBalance, PipelineConfig, PortId};
use dcp_switch::topology::{Description, NetworkConfig, SwitchDescription, Topology, TopologyError};
use dcp_wire::MacAddr;

const LEAF_SPINE: &str = include_str!("../../docs/topologies/leaf-spine.toml");

fn topology(text: &str) -> Result<Topology, TopologyError> {
    Topology::new(&Description::from_toml(text)?, 10.0)
}

fn macs(topology: &Topology) -> Vec<MacAddr> {
    (0..topology.hosts().len()).map(|host| MacAddr([2, 0, 0, 0, 0, u8::try_from(host).unwrap()])).collect()
}

fn configs(topology: &Topology) -> Vec<PipelineConfig> {
    let network = NetworkConfig {
        base: PipelineConfig::new(1),
        balance: LoadBalance::Adaptive,
        host_faults: dcp_pipeline::FaultConfig::NONE,
    };
    topology.configs(&network, &macs(topology))
}

fn mbps(rates: &[f64]) -> Vec<LinkRate> {
    rates.iter().map(|&rate| LinkRate::from_gbps(rate / 1000.0).unwrap()).collect()
}

#[test]
fn one_switch_knows_every_host() {
    let topology = Topology::new(&Description::single(3), 0.0).unwrap();
    let config = &configs(&topology)[0];
    assert_eq!((config.ports, config.groups.len(), topology.trunks().len()), (3, 0, 0));
    let known: Vec<_> = config.static_macs.iter().map(|&(_, port)| port.0).collect();
    assert_eq!(known, [0, 1, 2]);
    assert!(config.links.iter().all(|link| link.rate.is_unlimited()));
}

#[test]
fn two_switches_share_parallel_links_by_weight_and_rate() {
    let topology = Topology::new(&Description::two_switch(4, &[1, 4], 10.0), 20.0).unwrap();
    let [left, right] = &configs(&topology)[..] else { panic!("two switches") };
    assert_eq!((left.ports, right.ports), (1 + 2, 3 + 2));
    let rates = |config: &PipelineConfig| config.links.iter().map(|link| link.rate).collect::<Vec<_>>();
    assert_eq!(rates(left), mbps(&[20_000.0, 2_500.0, 10_000.0]));
    assert_eq!(rates(right), mbps(&[20_000.0, 20_000.0, 20_000.0, 2_500.0, 10_000.0]));
    let members: Vec<_> = left.groups[0].members.iter().map(|m| (m.port.0, m.weight)).collect();
    assert_eq!((members, left.groups[0].balance), (vec![(1, 1), (2, 4)], LoadBalance::Adaptive));
    assert_eq!((left.static_macs.len(), left.group_macs.len()), (1, 3));
    assert_eq!((right.static_macs.len(), right.group_macs.len()), (3, 1));
    assert_ne!(left.seed, right.seed, "they must not draw alike");
}

#[test]
fn a_single_link_needs_no_group() {
    let topology = Topology::new(&Description::two_switch(2, &[7], 0.0), 0.0).unwrap();
    for config in configs(&topology) {
        assert_eq!((config.groups.len(), config.static_macs.len()), (0, 2));
    }
}

#[test]
fn leaves_use_all_spines_and_spines_go_straight_down() {
    let topology = topology(LEAF_SPINE).unwrap();
    let configs = configs(&topology);
    for (index, config) in configs.iter().enumerate() {
        if topology.name(index).starts_with("leaf") {
            assert_eq!((config.groups.len(), config.groups[0].members.len()), (1, 2));
            assert_eq!(config.static_macs.len() + config.group_macs.len(), topology.hosts().len());
        } else {
            assert!(config.groups.is_empty());
            assert_eq!(config.static_macs.len(), topology.hosts().len());
        }
    }
}

#[test]
fn parallel_links_between_tiers_are_one_group_each() {
    let text = LEAF_SPINE.replace("delay_us = 1", "count = 2");
    let topology = topology(&text).unwrap();
    for (index, config) in configs(&topology).iter().enumerate() {
        let is_leaf = topology.name(index).starts_with("leaf");
        let sizes: Vec<_> = config.groups.iter().map(|group| group.members.len()).collect();
        assert_eq!(sizes, if is_leaf { vec![4] } else { vec![2, 2] });
    }
}

#[test]
fn every_example_of_the_documentation_is_a_topology() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/topologies");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        topology(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        seen += 1;
    }
    assert!(seen >= 2);
}

fn refused(text: &str) -> String {
    topology(text).map_or_else(|error| error.to_string(), |_| panic!("should be refused: {text}"))
}

/// Switches with a host each, and links.
fn network(switches: &[&str], links: &[(&str, &str)], more: &str) -> String {
    let switch = |name: &&str| format!("[[switch]]\nname = \"{name}\"\nhosts = 1\n");
    let link = |(from, to): &(&str, &str)| format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\n{more}\n");
    switches.iter().map(switch).chain(links.iter().map(link)).collect()
}

#[test]
fn what_cannot_work_is_refused_with_a_sentence() {
    let two = |more| network(&["a", "b"], &[("a", "b")], more);
    for (text, words) in [
        (String::new(), "there are 0 switches"),
        (network(&["a"], &[], ""), "1 hosts"),
        (network(&["a", "a"], &[], ""), "two switches are called `a`"),
        (network(&["a", "b"], &[("a", "c")], ""), "goes to `c`"),
        (network(&["a", "b"], &[("a", "a")], ""), "from `a` to itself"),
        (network(&["a", "b"], &[], ""), "no links lead from switch"),
        (two("gbps = -1"), "the rate in Gb/s"),
        (two("gbps = nan"), "the rate in Gb/s"),
        (two("gbps = 1e-9"), "the rate in Gb/s"),
        (two("delay_us = 1e9"), "the delay in microseconds"),
        (two("weight = 0"), "the weight of the link between `a` and `b` is 0, but must be 1 to 1000"),
        (two("count = 0"), "the count"),
        (two("count = 65"), "the count"),
        (two("speed = 1"), "unknown field `speed`"),
        ("[[switch]]\nname = \"a\"\nhosts = 4000000000".to_owned(), "4000000000 ports"),
    ] {
        let sentence = refused(&text);
        assert!(sentence.contains(words), "{text}\n{sentence}");
    }
}

// Static routes have no circles, but a frame with a damaged address is flooded.
#[test]
fn networks_in_which_frames_would_go_round_are_refused() {
    let ring = network(&["a", "b", "c"], &[("a", "b"), ("b", "c"), ("c", "a")], "");
    assert!(refused(&ring).contains("again and again"));
}

#[test]
fn tiers_that_are_not_linked_alike_are_refused_where_groups_would_overlap() {
    // From x, y is behind {1, 2} and z behind {2, 3}.
    let text = network(
        &["x", "y", "z"],
        &[("x", "p"), ("x", "q"), ("x", "r"), ("y", "p"), ("y", "q"), ("z", "q"), ("z", "r")],
        "",
    );
    let middle: String = ["p", "q", "r"].map(|name| format!("[[switch]]\nname = \"{name}\"\n")).concat();
    assert!(refused(&(text + &middle)).contains("overlap"));
}

#[test]
fn a_chain_of_switches_is_fine() {
    let topology = topology(&network(&["a", "b", "c"], &[("a", "b"), ("b", "c")], "")).unwrap();
    let host_at_c = configs(&topology)[0].static_macs[2];
    assert_eq!(host_at_c.1, PortId(1), "c is behind b");
}

#[test]
fn a_description_can_be_made_without_a_file() {
    let mut description = Description::two_switch(9, &[1; 4], 0.0);
    assert_eq!(description.hosts(), 9);
    description.switches.push(SwitchDescription::new("lonely", 1));
    assert!(matches!(Topology::new(&description, 0.0), Err(TopologyError::NoWay { .. })));
}
