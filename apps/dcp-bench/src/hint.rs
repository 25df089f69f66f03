//! The likely cause of a failed transfer, by what the network had counted.

use crate::net::NetCounters;
use crate::plan::Plan;

/// Below this, a timeout can pass while the system runs something else: 4.096 us * 2^11 = 8.4 ms.
const SHORT_TIMEOUT: u8 = 11;

/// Why a queue pair ran out of retries, and what to change.
pub fn of_exceeded_retries(plan: &Plan, net: &NetCounters) -> String {
    let never = |probability: crate::units::Probability| probability.get() == 0.0;
    if net.ho_lost > 0 || net.dropped > 0 && never(plan.faults.drop) {
        let (headers, others) = (net.ho_lost, net.dropped);
        return format!(
            "the switch had no room in its control queue ({headers} cut headers lost, {others} frames dropped): \
             lower --qp, --hosts or --window, or raise --control-bytes and --threshold together"
        );
    }
    if net.dropped > 0 {
        return "too much is lost without a trace for the retries: lower --drop, or raise --retry-cnt or --qp-timeout"
            .to_owned();
    }
    if net.duplicates > 0 && !never(plan.faults.duplicate) {
        return format!("the network delivered {} packets twice: lower --dup", net.duplicates);
    }
    if plan.qp_timeout != 0 && plan.qp_timeout <= SHORT_TIMEOUT {
        return format!(
            "nothing was lost: --qp-timeout {} may be too short for this machine, raise it; if that does not help, \
             this is a fault of the transport, please report it with the command line",
            plan.qp_timeout
        );
    }
    TRANSPORT.to_owned()
}

/// For a run whose network changes bytes.
pub const CORRUPT: &str = "without --icrc nothing notices the bytes that --corrupt changes: add --icrc";

/// Why the peer of another process no longer answers.
pub fn of_silence(plan: &Plan) -> String {
    format!(
        "nothing came back for {} timeouts of --qp-timeout {}: check the network in between, and that the server has a \
         core to itself",
        u32::from(plan.retry_cnt) + 1,
        plan.qp_timeout
    )
}

/// For what should never happen.
pub const TRANSPORT: &str = "this is a fault of the transport: please report it with the command line";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Faults;
    use crate::units::Probability;

    #[test]
    fn hint_fits_what_was_counted() {
        let some = Probability::new(0.1).unwrap();
        let clean = Plan::default();
        let lossy = Plan { faults: Faults { drop: some, ..Faults::default() }, ..Plan::default() };
        let doubled = Plan { faults: Faults { duplicate: some, ..Faults::default() }, ..Plan::default() };
        let hasty = Plan { qp_timeout: 4, ..Plan::default() };
        let net =
            |ho_lost, dropped, duplicates| NetCounters { ho_lost, dropped, duplicates, ..Default::default() };
        for (plan, net, words) in [
            (&clean, net(1, 0, 0), &["--control-bytes", "--threshold", "--qp", "--window", "--hosts"][..]),
            (&lossy, net(1, 9, 9), &["--control-bytes"]),
            (&clean, net(0, 1, 0), &["--control-bytes"]),
            (&lossy, net(0, 1, 0), &["--drop", "--retry-cnt", "--qp-timeout"]),
            (&lossy, net(0, 1, 5), &["--drop"]),
            (&doubled, net(0, 0, 1), &["--dup"]),
            (&hasty, net(0, 0, 0), &["--qp-timeout 4", "report"]),
            (&clean, net(0, 0, 0), &["report", "command line"]),
            (&clean, net(0, 0, 3), &["report"]),
        ] {
            let hint = of_exceeded_retries(plan, &net);
            assert!(words.iter().all(|word| hint.contains(word)), "{net:?}: {hint}");
        }
    }
}
