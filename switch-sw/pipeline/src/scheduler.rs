//! Weighted round robin in bytes between control and data (S-3).

use crate::weight::Weight;

/// Which queue sends next.
///
/// `lead` is how far the data queue's service, times the weight, is ahead of the control queue's: in thousandths of a
/// wire byte. Control is due while it is not negative. As long as both queues have frames, it stays within one frame
/// of zero, so shares are exact to a frame over any time. A queue that is empty earns nothing.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    weight_milli: i64,
    lead: i64,
}

impl Scheduler {
    pub(crate) fn new(weight: Weight) -> Self {
        Self { weight_milli: i64::from(weight.milli()), lead: 0 }
    }

    /// Whether control goes first when both have frames.
    #[inline]
    pub(crate) fn control_is_due(&self) -> bool {
        self.lead >= 0
    }

    /// A control frame was sent. An empty data queue (`alone`) gains no claim by it.
    #[inline]
    pub(crate) fn charge_control(&mut self, wire_len: u32, alone: bool) {
        let lead = self.lead - i64::from(wire_len) * 1000;
        self.lead = if alone { lead.max(self.lead.min(0)) } else { lead };
    }

    /// A data frame was sent. An empty control queue (`alone`) gains no claim by it.
    #[inline]
    pub(crate) fn charge_data(&mut self, wire_len: u32, alone: bool) {
        // Nothing to gain, and for most frames there is not.
        if alone && self.lead >= 0 {
            return;
        }
        let lead = self.lead + i64::from(wire_len) * self.weight_milli;
        self.lead = if alone { lead.min(0) } else { lead };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Probability, Random};

    /// Share of control in wire bytes when both queues always have frames of random lengths.
    fn share(milli: u32, control_len: u32, seed: u64) -> f64 {
        let mut scheduler = Scheduler::new(Weight::from_milli(milli).unwrap());
        let mut random = Random::new(seed, 0);
        let (mut control, mut data) = (0u64, 0u64);
        for _ in 0..400_000 {
            let long = random.hits(Probability::from_ppm(700_000));
            if scheduler.control_is_due() {
                scheduler.charge_control(control_len, false);
                control += u64::from(control_len);
            } else {
                let len = if long { 1538 } else { 84 };
                scheduler.charge_data(len, false);
                data += u64::from(len);
            }
        }
        control as f64 / data as f64
    }

    // S-3: twin of the exact share, w : 1.
    #[test]
    fn backlogged_queues_share_bytes_by_weight_within_one_percent() {
        for milli in [16, 52, 538, 1000, 3000, 25_300, 64_000] {
            for control_len in [84, 110] {
                let (got, exact) = (share(milli, control_len, 3), f64::from(milli) / 1000.0);
                assert!((got / exact - 1.0).abs() < 0.01, "{got} instead of {exact}");
            }
        }
    }

    #[test]
    fn an_empty_queue_saves_no_claim() {
        let mut scheduler = Scheduler::new(Weight::from_milli(1000).unwrap());
        for _ in 0..1000 {
            scheduler.charge_data(1000, true);
        }
        scheduler.charge_control(84, false);
        assert!(!scheduler.control_is_due(), "a second control frame in a row would be old credit");

        let mut scheduler = Scheduler::new(Weight::from_milli(1000).unwrap());
        for _ in 0..1000 {
            scheduler.charge_control(84, true);
        }
        assert!(scheduler.control_is_due(), "control owes nothing for link time that nobody else wanted");
    }

    #[test]
    fn a_debt_is_paid_while_the_creditor_is_served() {
        // One control frame with every data frame, never two queued: still no more than its share.
        let mut scheduler = Scheduler::new(Weight::from_milli(100).unwrap());
        scheduler.charge_control(84, false);
        for _ in 0..9 {
            scheduler.charge_data(84, true);
            assert!(!scheduler.control_is_due());
        }
        scheduler.charge_data(84, true);
        assert!(scheduler.control_is_due());
    }
}
