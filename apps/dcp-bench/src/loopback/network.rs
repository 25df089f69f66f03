//! The switches of one run.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dcp::dpdk::{Clock, Eal, FabricConfig, QueuePair, create_links};
use dcp::wire::{HO_LEN, MacAddr};
use dcp_switch::pipeline::{FaultConfig, PipelineConfig, Probability, QUEUE_FRAMES_MAX};
use dcp_switch::topology::{Cables, Network, NetworkConfig, Topology};

use super::fabric::mbufs_per_host;
use crate::failure::Failure;
use crate::plan::Plan;

/// Frames that each direction of a link holds.
const RING_FRAMES: u32 = 1024;

/// All links of a network: the hosts' ends, and what switches get.
pub(super) fn make_links(eal: &Eal, topology: &Topology) -> Result<(Vec<QueuePair>, Cables), Failure> {
    if topology.switches() == 0 {
        return make_wire(eal);
    }
    let hosts = topology.hosts().len();
    let config = FabricConfig { links: hosts + topology.trunks().len(), ring_size: RING_FRAMES };
    let mut links = create_links(eal, config).map_err(|error| Failure::environment(error.to_string()))?;
    let trunks = links.split_off(hosts);
    let (host_ends, switch_ends) = links.into_iter().unzip();
    Ok((host_ends, Cables { hosts: switch_ends, trunks }))
}

/// One link, whose ends are both hosts'.
fn make_wire(eal: &Eal) -> Result<(Vec<QueuePair>, Cables), Failure> {
    let config = FabricConfig { links: 1, ring_size: RING_FRAMES };
    let links = create_links(eal, config).map_err(|error| Failure::environment(error.to_string()))?;
    let ends = links.into_iter().flat_map(|(one, other)| [one, other]).collect();
    Ok((ends, Cables { hosts: Vec::new(), trunks: Vec::new() }))
}

/// The switches on those links, and what the user should know about them.
pub(super) fn make(
    topology: Topology,
    macs: &[MacAddr],
    cables: Cables,
    clock: &Clock,
    plan: &Plan,
) -> Result<(Network, Vec<String>), Failure> {
    let probability =
        |value: crate::units::Probability| Probability::new(value.get()).unwrap_or(Probability::NEVER);
    let bytes = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let base = PipelineConfig {
        trim_threshold_bytes: bytes(plan.threshold_bytes),
        control_bytes_max: bytes(plan.control_bytes),
        data_frames_max: frames_max(plan, plan.threshold_bytes, 1),
        control_frames_max: frames_max(plan, plan.control_bytes, 0),
        ecn: plan.congestion.marking(plan.network.link_gbps),
        seed: plan.seed,
        ..PipelineConfig::new(1)
    };
    let host_faults = FaultConfig {
        trim: probability(plan.faults.trim),
        drop: probability(plan.faults.drop),
        duplicate: probability(plan.faults.duplicate),
        reorder: probability(plan.faults.reorder),
        corrupt: probability(plan.faults.corrupt),
        ..FaultConfig::NONE
    };
    let config = NetworkConfig { base, balance: plan.network.balance.policy(), host_faults };
    let macs = if topology.switches() == 0 { &[] } else { macs };
    let mut network = Network::new(topology, &config, macs, cables, *clock)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(path) = &plan.network.pcap {
        capture(&mut network, path)?;
    }
    let mut notes = network.notes();
    if plan.faults.corrupt.get() > 0.0 && !plan.icrc {
        notes.push("without --icrc only the comparison notices bytes that --corrupt changes".to_owned());
    }
    Ok((network, notes))
}

fn capture(network: &mut Network, path: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::environment(format!("--pcap {}: {error}", path.display()));
    let file = File::create(path).map_err(failed)?;
    #[expect(clippy::disallowed_methods, reason = "captures carry the time of day; no measurement does")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    network.capture_hosts(Box::new(BufWriter::new(file)), unix_ns).map_err(failed)
}

/// Ends the capture; what there is to say about it.
pub(super) fn finish_capture(network: &mut Network, plan: &Plan) -> Option<String> {
    let path = plan.network.pcap.as_ref()?.display();
    Some(match network.finish_capture() {
        Ok(frames) => format!("{frames} frames captured in {path}"),
        Err(error) => format!("the capture in {path} is not complete: {error}"),
    })
}

/// Frames that a queue of so many bytes can hold, so that it is the bytes that bound it: no more than there are mbufs to
/// put frames in, with one for the frame that a queue at its threshold still takes.
fn frames_max(plan: &Plan, bytes: u64, least: u32) -> u32 {
    let frames = u32::try_from(bytes / HO_LEN as u64 + 1).unwrap_or(u32::MAX);
    let mbufs = plan.hosts * mbufs_per_host(plan.hosts);
    frames.min(mbufs).clamp(least, QUEUE_FRAMES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_bounded_by_bytes_and_not_by_frames() {
        for (hosts, bytes) in [(2, 0), (2, 512 << 10), (2, 900_000), (33, 3 << 20)] {
            let plan = Plan { hosts, ..Plan::default() };
            assert!(
                u64::from(frames_max(&plan, bytes, 1)) * HO_LEN as u64 > bytes,
                "{hosts} hosts, {bytes} bytes"
            );
        }
    }

    #[test]
    fn no_queue_is_made_for_more_frames_than_there_are() {
        for hosts in 2..=33 {
            let plan = Plan { hosts, ..Plan::default() };
            let frames = frames_max(&plan, 1 << 30, 1);
            assert_eq!(frames, hosts * mbufs_per_host(hosts));
            assert!(frames <= QUEUE_FRAMES_MAX);
        }
    }
}
