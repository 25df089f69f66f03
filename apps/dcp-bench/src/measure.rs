//! perftest's arithmetic of bandwidth.

/// Messages and bytes over a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Throughput {
    /// Messages.
    pub messages: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Time in nanoseconds.
    pub elapsed_ns: u64,
}

impl Throughput {
    /// Seconds that passed.
    pub fn seconds(self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// Payload bytes per second; 0 when no time passed.
    pub fn bytes_per_second(self) -> f64 {
        self.per_second(self.bytes)
    }

    /// Gigabits (10^9) per second.
    pub fn gbps(self) -> f64 {
        gbps(self.bytes_per_second())
    }

    /// Messages per second, in millions.
    pub fn mpps(self) -> f64 {
        self.per_second(self.messages) / 1e6
    }

    fn per_second(self, count: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { count as f64 / self.seconds() }
    }
}

/// Bytes per second as gigabits (10^9) per second.
pub fn gbps(bytes_per_second: f64) -> f64 {
    bytes_per_second * 8.0 / 1e9
}

/// Bytes per second as mebibytes (2^20) per second, perftest's default column.
pub fn mib_per_second(bytes_per_second: f64) -> f64 {
    bytes_per_second / f64::from(1u32 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    // I1
    #[test]
    fn rates_follow_perftest() {
        let t = Throughput { messages: 5000, bytes: 5000 * 65536, elapsed_ns: 100_000_000 };
        assert_eq!(format!("{:.1}", t.bytes_per_second() / 1e6), "3276.8");
        assert_eq!(format!("{:.2}", mib_per_second(t.bytes_per_second())), "3125.00");
        assert_eq!(format!("{:.4}", t.gbps()), "26.2144");
        assert_eq!(format!("{:.2}", t.mpps()), "0.05");
    }

    // I1
    #[test]
    fn days_of_traffic_keep_their_precision() {
        let t = Throughput { messages: 1, bytes: 2_565_000_000_000_000, elapsed_ns: 205_200_000_000_000 };
        assert_eq!(format!("{:.3}", t.gbps()), "100.000");
    }

    #[test]
    fn no_time_is_no_rate() {
        let t = Throughput { messages: 1, bytes: 1, elapsed_ns: 0 };
        assert_eq!((t.gbps(), t.mpps()), (0.0, 0.0));
    }
}
