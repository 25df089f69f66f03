//! Memory of one side, and queue pairs that use it.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::core::{Access, Completion, CqId, Endpoint, MrAttr, MrKeys, PdId, QpConfig};
use dcp::dpdk::memory::{MemInfo, available_bytes};
use dcp::dpdk::{HugePreference, Region};
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
/// Bytes of a queue pair, and what it takes for each message and each receive that it has room for.
const QP_BYTES: u64 = 2 << 10;
const MESSAGE_BYTES: u64 = 192;
const RECEIVE_BYTES: u64 = 112;
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

/// A range of memory that is to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Address that peers and work requests know it by.
    pub(crate) va: u64,
    pub(crate) bytes: usize,
    /// Which pages it wants.
    pub(crate) huge: HugePreference,
}

impl Extent {
    /// What the messages of a layout take.
    pub(crate) fn of(layout: Layout) -> Self {
        Self { va: REGION_VA, bytes: layout.bytes(), huge: layout.huge }
    }
}

/// Refuses a run that the machine cannot hold, before the kernel's memory killer does. `needed`: bytes.
pub(crate) fn check_memory(needed: u64) -> Result<(), Failure> {
    let available = available_bytes().saturating_add(MemInfo::read().huge_free_bytes());
    if needed <= available {
        return Ok(());
    }
    let message = format!(
        "{} MiB of memory are needed for messages and queue pairs, and {} are available",
        needed >> 20,
        available >> 20
    );
    Err(Failure::environment(message).with_hint(SMALLER))
}

/// Bytes that one side takes for its queue pairs and their completions, a little more than was seen.
pub(crate) fn queue_bytes(plan: &Plan, layout: Layout, role: Role, qps: u64) -> u64 {
    let receives = if role.receives(plan) { u64::from(plan.rx_depth) } else { 1 };
    qps * (QP_BYTES + layout.depth * MESSAGE_BYTES + receives * RECEIVE_BYTES)
}

/// Memory, cleared and registered.
pub(crate) fn add_memory(
    worker: &mut Worker,
    pd: PdId,
    extent: Extent,
    access: Access,
    interrupted: &AtomicBool,
) -> Result<Memory, Failure> {
    let Extent { va, bytes, huge } = extent;
    let region = Region::alloc(bytes, huge)
        .map_err(|error| Failure::environment(error.to_string()).with_hint(SMALLER))?;
    // Pages appear now, not in the middle of the run.
    clear(&region, bytes, interrupted)?;
    let id = worker.add_region(region.clone());
    let attr = MrAttr { pd, region: id, offset: 0, va, len: bytes as u64, access };
    let keys =
        worker.endpoint_mut().register(attr).map_err(|error| Failure::environment(error.to_string()))?;
    Ok(Memory { region, keys })
}

/// Fills the first bytes of a region with zeros.
///
/// # Errors
/// The user stopped it.
pub(crate) fn clear(region: &Region, bytes: usize, interrupted: &AtomicBool) -> Result<(), Failure> {
    for at in (0..bytes).step_by(PART) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Failure::interrupted());
        }
        let len = PART.min(bytes - at);
        region.fill(at as u64, len, 0).map_err(|error| Failure::environment(error.to_string()))?;
    }
    Ok(())
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

impl Cqs {
    /// Forgets completions that nobody took.
    pub(crate) fn drain(&self, endpoint: &mut Endpoint) {
        let mut batch = [Completion::BLANK; 64];
        for cq in [self.send, self.recv] {
            while endpoint.poll_completions(cq, &mut batch) > 0 {}
        }
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
