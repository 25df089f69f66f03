//! The time of links that have a rate, on a machine that does not always run.

/// Most that the network's time goes on in one round.
const STEP_NS: u64 = 50_000;
/// Most that it makes up; what is beyond is lost to the links, which see no jump either.
const BEHIND_NS_MAX: u64 = 20_000_000;

/// Time as the links of a network see it: the clock's, unless the thread did not run for a while.
///
/// Then rounds go on in small steps until the time has caught up, with hosts running in between. So a thread that the
/// system put aside looks to the links like hosts that are all a little late, and not like ten milliseconds of frames in
/// one instant, which would overrun any queue. The network's time is never ahead of the clock, so that no rate is exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NetworkTime {
    now_ns: Option<u64>,
    /// Time lost so far.
    lost_ns: u64,
}

impl NetworkTime {
    pub(super) const START: Self = Self { now_ns: None, lost_ns: 0 };

    /// The time of the next round.
    pub(super) fn advance(&mut self, clock_ns: u64) -> u64 {
        let target_ns = clock_ns - self.lost_ns;
        let last_ns = self.now_ns.unwrap_or(target_ns);
        self.lost_ns += (target_ns - last_ns).saturating_sub(BEHIND_NS_MAX);
        let now_ns = target_ns.min(last_ns + STEP_NS);
        self.now_ns = Some(now_ns);
        now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 1_000_000_000;

    #[test]
    fn time_is_the_clock_of_a_thread_that_runs() {
        let mut time = NetworkTime::START;
        for clock in (START_NS..START_NS + 10_000_000).step_by(30_000) {
            assert_eq!(time.advance(clock), clock);
        }
    }

    #[test]
    fn a_gap_is_made_up_in_small_steps() {
        let mut time = NetworkTime::START;
        time.advance(START_NS);
        let (mut last, mut clock) = (START_NS, START_NS + 10_000_000);
        loop {
            let now = time.advance(clock);
            assert!(now > last && now - last <= STEP_NS && now <= clock);
            if now == clock {
                break;
            }
            (last, clock) = (now, clock + 10_000);
        }
        assert!(clock < START_NS + 13_000_000, "it catches up while the thread runs");
    }

    #[test]
    fn what_is_beyond_a_long_gap_is_lost() {
        let mut time = NetworkTime::START;
        time.advance(START_NS);
        assert_eq!(time.advance(10 * START_NS), START_NS + STEP_NS);
        let end = (1..).map(|round| time.advance(10 * START_NS + round)).take(1000).last();
        assert!(end.is_some_and(|end| end < START_NS + BEHIND_NS_MAX + 1001), "{end:?}");
    }
}
