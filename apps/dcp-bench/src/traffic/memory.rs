//! Memory of one side, and queue pairs that use it.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::core::{Access, CqId, Endpoint, MrAttr, MrKeys, PdId, QpConfig};
use dcp::dpdk::Region;
use dcp::dpdk::memory::{MemInfo, available_bytes};
use dcp::wire::Msn;

use super::layout::Layout;
use crate::failure::Failure;
use crate::plan::Plan;

/// Address of the first byte of a registered region, the same for each.
pub(crate) const REGION_VA: u64 = 0x1000_0000_0000;
/// MSNs under way per queue pair at most.
const WINDOW_MAX: u32 = 1 << 15;
/// Bytes cleared between two looks at the wish to stop.
const PART: usize = 4 << 20;
const SMALLER: &str = "use a smaller --size, fewer --qp or fewer --hosts";

/// Registered memory.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) region: Region,
    pub(crate) keys: MrKeys,
}

impl Memory {
    /// The same memory, for somebody else who uses it.
    pub(crate) fn share(&self) -> Self {
        Self { region: self.region.clone(), keys: self.keys }
    }
}

/// Refuses buffers that the machine cannot hold, before the kernel's memory killer does. `copies`: as many of the layout.
pub(crate) fn check_memory(layout: Layout, copies: u64) -> Result<(), Failure> {
    let needed = (layout.bytes() as u64).saturating_mul(copies);
    let available = available_bytes().saturating_add(MemInfo::read().huge_free_bytes());
    if needed <= available {
        return Ok(());
    }
    let message = format!(
        "{} MiB of memory are needed for messages and {} are available",
        needed >> 20,
        available >> 20
    );
    Err(Failure::environment(message).with_hint(SMALLER))
}

/// Memory for a layout, cleared and registered.
pub(crate) fn add_memory(
    worker: &mut Worker,
    pd: PdId,
    layout: Layout,
    access: Access,
    interrupted: &AtomicBool,
) -> Result<Memory, Failure> {
    let region = Region::alloc(layout.bytes(), layout.huge)
        .map_err(|error| Failure::environment(error.to_string()).with_hint(SMALLER))?;
    // Pages appear now, not in the middle of the run.
    for at in (0..layout.bytes()).step_by(PART) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Failure::interrupted());
        }
        let len = PART.min(layout.bytes() - at);
        region.fill(at as u64, len, 0).map_err(|error| Failure::environment(error.to_string()))?;
    }
    let id = worker.add_region(region.clone());
    let attr = MrAttr { pd, region: id, offset: 0, va: REGION_VA, len: layout.bytes() as u64, access };
    let keys =
        worker.endpoint_mut().register(attr).map_err(|error| Failure::environment(error.to_string()))?;
    Ok(Memory { region, keys })
}

/// Who begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Sends what the run is about.
    Client,
    /// Is there for it.
    Server,
}

impl Role {
    fn sends(self, plan: &Plan) -> bool {
        self == Self::Client || plan.is_duplex()
    }

    fn receives(self, plan: &Plan) -> bool {
        (self == Self::Server || plan.is_duplex()) && plan.takes_receives()
    }
}

/// Where completions go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cqs {
    /// Those of sends.
    pub(crate) send: CqId,
    /// Those of receives.
    pub(crate) recv: CqId,
}

impl Cqs {
    /// With room for everything outstanding on so many queue pairs: all of it can complete between two polls.
    ///
    /// # Errors
    /// That is more than a queue holds.
    pub(crate) fn create(
        endpoint: &mut Endpoint,
        plan: &Plan,
        role: Role,
        qps: u64,
    ) -> Result<Self, Failure> {
        let mut create = |used: bool, depth: u32, option: &str| {
            let depth = if used { qps * u64::from(depth) } else { 1 };
            let created = endpoint.create_cq(usize::try_from(depth).unwrap_or(usize::MAX));
            created.map_err(|error| Failure::usage(format!("--qp times {option}: {error}")))
        };
        Ok(Self {
            send: create(role.sends(plan), plan.tx_depth, "--tx-depth")?,
            recv: create(role.receives(plan), plan.rx_depth, "--rx-depth")?,
        })
    }
}

/// The queue pairs of a side.
pub(crate) fn qp_config(plan: &Plan, layout: Layout, pd: PdId, cqs: Cqs, role: Role) -> QpConfig {
    let depth = u32::try_from(layout.depth).unwrap_or(u32::MAX);
    let mut config = QpConfig {
        recv_cq: cqs.recv,
        send_depth: if role.sends(plan) { depth } else { 1 },
        recv_depth: if role.receives(plan) { plan.rx_depth } else { 1 },
        mtu: plan.mtu,
        // Half of it can be unanswered at once.
        window: depth.next_power_of_two().clamp(2, WINDOW_MAX),
        timeout_exponent: plan.qp_timeout,
        retry_cnt: plan.retry_cnt,
        rnr_retry: plan.rnr_retry,
        icrc: plan.icrc,
        start_msn: Msn::ZERO,
        ..QpConfig::new(pd, cqs.send)
    };
    plan.load.apply(&mut config, plan.qps);
    plan.congestion.apply(&mut config, plan.window_bytes, plan.network.link_gbps);
    config
}
