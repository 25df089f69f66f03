//! The plan that the options of a run describe, before its values are checked.

use super::BandwidthArgs;
use crate::failure::Failure;
use crate::plan::{Device, Faults, LATENCY_ITERATIONS, Length, Mode, Op, Plan};

impl BandwidthArgs {
    pub(super) fn unchecked_plan(&self, op: Op, device: Device) -> Result<Plan, Failure> {
        let default = Plan::default();
        let (traffic, fabric) = (&self.traffic, &self.fabric);
        let length = match (traffic.duration, traffic.iters) {
            (Some(time), _) => Length::Duration(time),
            (None, Some(n)) => Length::Iterations(n),
            (None, None) if traffic.lat => Length::Iterations(LATENCY_ITERATIONS),
            (None, None) => default.length,
        };
        let mode = if traffic.lat { Mode::Latency } else { Mode::Bandwidth };
        let network = fabric.network.network()?;
        let hosts = fabric.hosts.or(network.own_hosts()).unwrap_or(default.hosts);
        let total_qps = u64::from(hosts.saturating_sub(1)) * u64::from(traffic.qp);
        let depth = |asked: Option<u32>, default| asked.unwrap_or(Plan::depth_that_fits(default, total_qps));
        Ok(Plan {
            op,
            mode,
            device,
            size: match self.load.size_dist {
                Some(dist) => dist.largest(),
                None => traffic.size.unwrap_or(op.default_size(mode)),
            },
            length,
            qps: traffic.qp,
            tx_depth: depth(traffic.tx_depth, default.tx_depth),
            rx_depth: depth(traffic.rx_depth, default.rx_depth),
            mtu: traffic.mtu.unwrap_or(default.mtu),
            mtu_asked: traffic.mtu.is_some(),
            bidirectional: traffic.bidirectional,
            inline_bytes: self.perftest.inline_size,
            cq_mod: traffic.cq_mod.unwrap_or(Plan::moderation_that_shows(default.cq_mod, total_qps)),
            threads: traffic.threads,
            cores: traffic.cores.clone().map_or(Vec::new(), |cores| cores.0),
            hosts,
            network,
            window_bytes: traffic.window,
            congestion: self.congestion.congestion(),
            burden: self.burden.burden(),
            threshold_bytes: fabric.threshold,
            control_bytes: fabric.control_bytes,
            faults: Faults {
                trim: fabric.trim,
                drop: fabric.drop,
                duplicate: fabric.dup,
                reorder: fabric.network.reorder,
                corrupt: fabric.network.corrupt,
            },
            seed: fabric.seed,
            verify_each: traffic.verify,
            qp_timeout: traffic.qp_timeout.unwrap_or(Plan::timeout_that_fits(default.qp_timeout, total_qps)),
            retry_cnt: traffic.retry_cnt,
            rnr_retry: traffic.rnr_retry,
            icrc: traffic.icrc,
            load: self.load.load(),
            use_hugepages: self.perftest.use_hugepages,
            reporting: self.perftest.reporting(),
        })
    }
}
