//! Options that both sides must be given alike, and what else goes with an offer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::plan::{Length, Mode, Plan};
use crate::sizes::SizeDist;

/// Version of what the two say to each other.
const VERSION: u32 = 2;

/// What the programs add to an offer.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(super) struct Extras {
    bench: u32,
    /// By name, in the order they are compared in.
    options: Vec<(String, Value)>,
    /// The MTU that the user asked for.
    mtu: Option<u32>,
    /// Numbers of all queue pairs.
    pub(super) qpns: Vec<u32>,
}

impl Extras {
    /// `several`: whether the plan is the first of --all.
    pub(super) fn new(plan: &Plan, several: bool, qpns: Vec<u32>) -> Self {
        let mtu = plan.mtu_asked.then_some(plan.mtu);
        Self { bench: VERSION, options: options(plan, several), mtu, qpns }
    }

    /// From an offer of another process.
    ///
    /// # Errors
    /// A sentence: they are none of this program's.
    pub(super) fn read(app: &Value) -> Result<Self, String> {
        let extras: Self = serde_json::from_value(app.clone())
            .map_err(|_| "the other side is no dcp-bench, or one of another version".to_owned())?;
        let ours = VERSION;
        match extras.bench {
            VERSION => Ok(extras),
            theirs => {
                Err(format!("dcp-bench of version {theirs} meets version {ours}: use the same release"))
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        // Numbers and strings: nothing that could fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether a client fits this server. `mtu`: the smaller one of what the two devices carry.
    ///
    /// # Errors
    /// A sentence that names the option and both values.
    pub(super) fn check(&self, client: &Self, mtu: u32) -> Result<(), String> {
        for (name, here) in &self.options {
            let there =
                client.options.iter().find(|(other, _)| other == name).map_or(&Value::Null, |(_, it)| it);
            if here != there {
                let (here, there) = (text(here), text(there));
                return Err(format!(
                    "{name} is {there} at the client and {here} at the server: give both sides the same"
                ));
            }
        }
        for (asked, side) in [(self.mtu, "server"), (client.mtu, "client")] {
            if let Some(asked) = asked.filter(|&asked| asked != mtu) {
                return Err(format!(
                    "--mtu is {asked} at the {side}, but the two have {mtu} in common: choose that, or leave it out"
                ));
            }
        }
        if client.qpns.len() != self.qpns.len() {
            return Err("the client named another number of queue pairs than its --qp".to_owned());
        }
        Ok(())
    }
}

/// Both sides must lay out their memory alike, and know when the run is over.
fn options(plan: &Plan, several: bool) -> Vec<(String, Value)> {
    let (iterations, seconds) = match plan.length {
        Length::Iterations(count) => (json!(count.get()), Value::Null),
        Length::Duration(duration) => (Value::Null, json!(duration.as_secs_f64())),
    };
    let mut options = vec![
        ("the operation", json!(plan.op.name())),
        ("--lat", json!(plan.mode == Mode::Latency)),
        ("--bidirectional", json!(plan.bidirectional)),
        ("--all", json!(several)),
        ("--size", json!(plan.size)),
        ("--size-dist", json!(plan.load.size_dist.map(SizeDist::name))),
        ("--duration", seconds),
        ("--iters", iterations),
        ("--qp", json!(plan.qps)),
        ("--tx-depth", json!(plan.tx_depth)),
        ("--verify", json!(plan.verify_each)),
        ("--icrc", json!(plan.icrc)),
        ("--seed", json!(plan.seed)),
    ];
    if plan.op.is_answered() {
        // The data comes from the server, and so under its window.
        options.push(("--window", json!(plan.window_bytes)));
        options.push(("--cc", json!(plan.congestion.scheme.name())));
        options.push(("--rhcc", json!(plan.congestion.rhcc.is_some())));
    }
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A value as people write it. One from another process goes to a terminal.
fn text(value: &Value) -> String {
    let text = match value {
        Value::Null => "not given".to_owned(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    dcp::connect::printable(&text)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use super::*;
    use crate::op::Op;

    fn refusal(server: &Plan, client: &Plan, mtu: u32) -> String {
        let client = Extras::read(&Extras::new(client, false, vec![1]).json()).unwrap();
        Extras::new(server, false, vec![1]).check(&client, mtu).err().unwrap_or_default()
    }

    #[test]
    fn each_option_that_differs_is_named_with_both_values() {
        let base = Plan::default();
        let n = Length::Iterations(NonZeroU64::new(7).unwrap());
        for (plan, sentence) in [
            (
                Plan { op: Op::Send, ..base.clone() },
                "the operation is send at the client and write at the server",
            ),
            (Plan { mode: Mode::Latency, ..base.clone() }, "--lat is on at the client and off at the server"),
            (
                Plan { bidirectional: true, ..base.clone() },
                "--bidirectional is on at the client and off at the server",
            ),
            (Plan { size: 1, ..base.clone() }, "--size is 1 at the client and 65536 at the server"),
            (Plan { length: n, ..base.clone() }, "--iters is 7 at the client and 5000 at the server"),
            (
                Plan { length: Length::Duration(Duration::from_millis(1500)), ..base.clone() },
                "--duration is 1.5 at the client and not given at the server",
            ),
            (Plan { qps: 3, ..base.clone() }, "--qp is 3 at the client and 1 at the server"),
            (Plan { tx_depth: 3, ..base.clone() }, "--tx-depth is 3 at the client and 128 at the server"),
            (
                Plan { verify_each: true, ..base.clone() },
                "--verify is on at the client and off at the server",
            ),
            (Plan { icrc: true, ..base.clone() }, "--icrc is on at the client and off at the server"),
            (Plan { seed: 9, ..base.clone() }, "--seed is 9 at the client and 1 at the server"),
        ] {
            let refused = refusal(&base, &plan, 4096);
            assert!(refused.starts_with(sentence), "{refused}");
        }
        assert_eq!(refusal(&base, &base, 1024), "");
    }

    #[test]
    fn all_sizes_of_one_side_are_refused() {
        let plan = Plan::default();
        let client = Extras::new(&Plan { size: 2, ..plan.clone() }, true, vec![1]);
        let refused = Extras::new(&plan, false, vec![1]).check(&client, 4096).unwrap_err();
        assert!(refused.starts_with("--all is on at the client and off at the server"), "{refused}");
    }

    #[test]
    fn mtu_that_was_asked_for_must_be_what_both_carry() {
        let (any, asked) = (Plan::default(), Plan { mtu: 4096, mtu_asked: true, ..Plan::default() });
        assert!(
            refusal(&any, &asked, 1024).starts_with("--mtu is 4096 at the client, but the two have 1024")
        );
        assert!(
            refusal(&asked, &any, 1024).starts_with("--mtu is 4096 at the server, but the two have 1024")
        );
        assert_eq!(refusal(&asked, &any, 4096), "");
    }

    #[test]
    fn other_programs_are_refused() {
        for app in [Value::Null, json!({}), json!({"bench": "x"})] {
            assert!(Extras::read(&app).unwrap_err().contains("no dcp-bench"));
        }
        let mut newer = Extras::new(&Plan::default(), false, vec![1]);
        newer.bench = 3;
        assert!(Extras::read(&newer.json()).unwrap_err().contains("version 3 meets version 2"));
    }
}
