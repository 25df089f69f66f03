//! A plan is refused unless its values are in range and go together.

mod device;
mod mode;
mod range;
mod values;

use super::limits::{HOSTS_MAX, QPS_MAX, QUEUE_BYTES_MAX, RX_DEPTH_MAX, SIZE_MAX, TX_DEPTH_MAX};
use super::{Device, Length, Mode, Plan};
use crate::failure::Failure;
use range::in_range;

/// Messages of a ping-pong that may be unacknowledged: answers can be faster than acknowledgements.
const RALLY_DEPTH: u32 = 8;

impl Plan {
    /// The plan with its depth and moderation cut to what the run can use, as perftest does.
    ///
    /// # Errors
    /// A usage failure that names the option, its value and what is allowed.
    pub fn checked(mut self) -> Result<Self, Failure> {
        in_range("--size", self.size, 0, SIZE_MAX)?;
        in_range("--qp", u64::from(self.qps), 1, u64::from(QPS_MAX))?;
        in_range("--tx-depth", u64::from(self.tx_depth), 1, u64::from(TX_DEPTH_MAX))?;
        in_range("--rx-depth", u64::from(self.rx_depth), 1, u64::from(RX_DEPTH_MAX))?;
        in_range("--cq-mod", u64::from(self.cq_mod), 1, u64::from(TX_DEPTH_MAX))?;
        in_range("--hosts", u64::from(self.hosts), 2, u64::from(HOSTS_MAX))?;
        self.network.topology(self.hosts)?;
        in_range("--threshold", self.threshold_bytes, 0, QUEUE_BYTES_MAX)?;
        in_range("--control-bytes", self.control_bytes, 0, QUEUE_BYTES_MAX)?;
        in_range("--qp-timeout", u64::from(self.qp_timeout), 0, 31)?;
        in_range("--retry-cnt", u64::from(self.retry_cnt), 0, 7)?;
        in_range("--rnr-retry", u64::from(self.rnr_retry), 0, 7)?;
        self.check_atomic()?;
        self.check_latency()?;
        self.check_bidirectional()?;
        self.check_inline()?;
        self.check_cores()?;
        self.check_mtu()?;
        self.check_window()?;
        let is_loop = self.device == Device::Loop;
        self.congestion.check(is_loop, self.network.link_gbps, self.threshold_bytes)?;
        self.burden.check(&self.device)?;
        self.check_link()?;
        self.check_direct()?;
        self.check_null()?;
        self.check_faults()?;
        if let Length::Iterations(n) = self.length {
            self.check_total(n)?;
            let at_most = |depth: u32| u32::try_from(n.get()).map_or(depth, |n| n.min(depth));
            (self.tx_depth, self.rx_depth) = (at_most(self.tx_depth), at_most(self.rx_depth));
        }
        if self.load.arrivals.is_some() {
            // Each completion has its time.
            self.cq_mod = 1;
        }
        if self.mode == Mode::Latency {
            self.tx_depth = self.tx_depth.min(if self.is_rally() { RALLY_DEPTH } else { 1 });
            self.cq_mod = 1;
        }
        self.cq_mod = self.cq_mod.min(self.tx_depth);
        self.check_load()?;
        Ok(self)
    }
}
