//! What the control did, as JSON and in a sentence.

use dcp_core::TrafficClass;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::governor::Governor;

/// One object; the last one of a run is `final`.
pub(crate) fn object(governor: &Governor, seconds: f64, is_final: bool) -> Value {
    let (control, tally) = (governor.control(), governor.tally());
    let crosses = control.config().cross_numa;
    let level = |class| control.levels().of(class).number();
    json!({
        "tool": "dcp-rhcc",
        "version": env!("CARGO_PKG_VERSION"),
        "seconds": seconds,
        "final": is_final,
        "signal": governor.signal().name(),
        "unit": governor.signal().unit(),
        "actuator": governor.actuator().name(),
        "threshold": units(control.config().threshold.milli()),
        "occupancy": units(control.occupancy().milli()),
        "occupancy_average": units(tally.occupancy_milli / tally.periods.max(1)),
        "level": { "local": level(TrafficClass::Local), "cross_numa": crosses.then(|| level(TrafficClass::CrossNuma)) },
        "periods": tally.periods,
        "periods_without_reading": tally.silent,
        "periods_at_level": { "local": tally.local, "cross_numa": crosses.then_some(tally.cross_numa) },
    })
}

#[expect(clippy::cast_precision_loss, reason = "a report")]
fn units(milli: u64) -> f64 {
    milli as f64 / 1000.0
}

/// Why the program ends early.
pub(crate) fn error(failure: &Failure) -> Value {
    json!({ "tool": "dcp-rhcc", "error": { "kind": failure.kind(), "message": failure.to_string() } })
}

/// What happened in all.
pub(crate) fn sentence(governor: &Governor) -> String {
    let tally = governor.tally();
    let held: u64 = tally.local[1..].iter().sum();
    let percent = |part: u64| part * 100 / tally.periods.max(1);
    format!(
        "{} periods, occupancy {:.1} {} on average, held back in {} % of them (at 20 %: {} %)",
        tally.periods,
        units(tally.occupancy_milli / tally.periods.max(1)),
        governor.signal().unit(),
        percent(held),
        percent(tally.local[4]),
    )
}
