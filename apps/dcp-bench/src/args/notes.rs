//! What the user should know about the plan that came of the options.

use super::BandwidthArgs;
use crate::plan::{Device, Mode, Plan};

impl BandwidthArgs {
    /// Remarks on a plan, the only one or the first of several, one sentence each.
    pub(super) fn notes(&self, plan: &Plan, is_only: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if plan.device == Device::Loop {
            let who = if plan.has_switch() { "clients, switch and server" } else { "client and server" };
            notes.push(format!("loop: {who} all run in this process; use --server to wait for a peer"));
        }
        if is_only && plan.inline_bytes > 0 && plan.load.size_dist.is_none() && plan.size > plan.inline_bytes
        {
            let (size, limit) = (plan.size, plan.inline_bytes);
            notes.push(format!(
                "messages of {size} bytes are larger than --inline_size {limit}: none is copied"
            ));
        }
        if self.traffic.qp_timeout.is_none() && plan.qp_timeout != Plan::default().qp_timeout {
            let (timeout, qps) = (plan.qp_timeout, plan.total_qps());
            notes.push(format!("--qp-timeout is {timeout}: {qps} queue pairs wait long for their turns"));
        }
        notes.extend(self.cuts(plan));
        notes
    }

    /// Values that were asked for and cannot be had.
    fn cuts(&self, plan: &Plan) -> impl Iterator<Item = String> {
        let limit = match plan.mode {
            Mode::Bandwidth => "the messages of a queue pair",
            Mode::Latency => "what a latency test uses",
        };
        let cuts = [
            ("--tx-depth", self.traffic.tx_depth, plan.tx_depth, limit),
            ("--rx-depth", self.traffic.rx_depth, plan.rx_depth, "the messages of a queue pair"),
            ("--cq-mod", self.traffic.cq_mod, plan.cq_mod, "the depth of the send queue"),
        ];
        let cuts = cuts.into_iter().filter(|(_, asked, used, _)| asked.is_some_and(|asked| asked != *used));
        cuts.map(|(option, _, used, limit)| format!("{option} is cut to {used}, {limit}"))
    }
}
