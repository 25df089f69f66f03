//! What the network did during a run.

use std::fmt;

use dcp::Worker;
use serde::Serialize;

/// Counters of the endpoints and of the switch between them, summed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct NetCounters {
    /// Data packets that senders transmitted, resent ones included; with the other side in another process, those that
    /// came from there too.
    pub data_packets: u64,
    /// Of those, the ones that were resent: after a returned header, or after a timeout.
    pub retransmitted: u64,
    /// Data packets that a switch cut to their header; with the other side in another process, those whose header came
    /// back to this side.
    pub trimmed: u64,
    /// Cut headers that came back to their sender.
    pub ho_returned: u64,
    /// Cut headers that a full control queue dropped.
    pub ho_lost: u64,
    /// Frames that a switch dropped for any other reason, injected drops included.
    pub dropped: u64,
    /// Data packets that a receiver had seen before.
    pub duplicates: u64,
    /// Expiries of the coarse timer.
    pub timeouts: u64,
    /// Congestion notifications sent.
    pub cnps: u64,
    /// Packets that arrived with a switch's mark of congestion, those cut to their header included.
    pub ecn_marked: u64,
    /// Receiver-not-ready answers.
    pub rnr_naks: u64,
}

impl NetCounters {
    /// What one host counted.
    pub fn of(worker: &Worker) -> Self {
        let counters = worker.endpoint().counters();
        Self {
            data_packets: counters.data_packets,
            retransmitted: counters.retransmitted,
            ho_returned: counters.ho_returned,
            ho_lost: worker.counters().bounces_lost,
            duplicates: counters.duplicates(),
            timeouts: counters.timeouts + counters.window_timeouts,
            cnps: counters.cnps_sent,
            ecn_marked: counters.ce_received,
            rnr_naks: counters.rnr_naks,
            ..Self::default()
        }
    }

    /// What one of two processes sees of the network: the packets that it receives count like those that it sends.
    pub fn of_one_side(worker: &Worker) -> Self {
        Self::of(worker).seen_from_here(worker.endpoint().counters().data_received)
    }

    /// A side that cannot ask the switch knows of a cut by the header that comes back.
    fn seen_from_here(self, data_received: u64) -> Self {
        Self { data_packets: self.data_packets + data_received, trimmed: self.ho_returned, ..self }
    }

    /// What was counted since then.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            data_packets: self.data_packets - earlier.data_packets,
            retransmitted: self.retransmitted - earlier.retransmitted,
            trimmed: self.trimmed - earlier.trimmed,
            ho_returned: self.ho_returned - earlier.ho_returned,
            ho_lost: self.ho_lost - earlier.ho_lost,
            dropped: self.dropped - earlier.dropped,
            duplicates: self.duplicates - earlier.duplicates,
            timeouts: self.timeouts - earlier.timeouts,
            cnps: self.cnps - earlier.cnps,
            ecn_marked: self.ecn_marked - earlier.ecn_marked,
            rnr_naks: self.rnr_naks - earlier.rnr_naks,
        }
    }

    /// Adds the counters of another part of the network.
    pub fn add(&mut self, other: &Self) {
        self.data_packets += other.data_packets;
        self.retransmitted += other.retransmitted;
        self.trimmed += other.trimmed;
        self.ho_returned += other.ho_returned;
        self.ho_lost += other.ho_lost;
        self.dropped += other.dropped;
        self.duplicates += other.duplicates;
        self.timeouts += other.timeouts;
        self.cnps += other.cnps;
        self.ecn_marked += other.ecn_marked;
        self.rnr_naks += other.rnr_naks;
    }
}

impl fmt::Display for NetCounters {
    /// The summary that follows the rows of a run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packets, {} retransmitted, {} trimmed, {} HO lost, {} dropped, {} timeouts, {} CNPs",
            self.data_packets,
            self.retransmitted,
            self.trimmed,
            self.ho_lost,
            self.dropped,
            self.timeouts,
            self.cnps
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_covers_every_counter() {
        let one = NetCounters {
            data_packets: 1,
            retransmitted: 2,
            trimmed: 3,
            ho_returned: 4,
            ho_lost: 5,
            dropped: 6,
            duplicates: 7,
            timeouts: 8,
            cnps: 9,
            ecn_marked: 10,
            rnr_naks: 11,
        };
        let mut sum = one;
        sum.add(&one);
        assert_eq!(sum.since(&one), one);
        let (one, sum) = (serde_json::to_value(one).unwrap(), serde_json::to_value(sum).unwrap());
        for (name, value) in one.as_object().unwrap() {
            assert_eq!(sum[name].as_u64(), value.as_u64().map(|v| 2 * v), "{name}");
        }
    }

    #[test]
    fn one_side_counts_what_it_received_and_the_headers_that_came_back() {
        let own = NetCounters { data_packets: 5, ho_returned: 2, ..NetCounters::default() };
        let seen = own.seen_from_here(3);
        assert_eq!((seen.data_packets, seen.trimmed, seen.ho_returned), (8, 2, 2));
    }

    #[test]
    fn summary_is_one_line() {
        let net = NetCounters { data_packets: 800, retransmitted: 40, trimmed: 40, ..NetCounters::default() };
        assert_eq!(
            net.to_string(),
            "800 packets, 40 retransmitted, 40 trimmed, 0 HO lost, 0 dropped, 0 timeouts, 0 CNPs"
        );
    }
}
