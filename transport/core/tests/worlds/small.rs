//! The worlds that every test run searches whole.

use crate::plan::{Order, Plan, Receives, Verb};
use crate::search::{Tally, search};

/// Searches a world and says how large it is.
pub(crate) fn explore(plan: &Plan) -> Tally {
    match search(plan, |_| {}) {
        Ok(tally) => {
            println!(
                "{} states, {} events, {} ends, {} deep: {plan:?}",
                tally.states, tally.events, tally.ends, tally.depth
            );
            tally
        }
        Err(error) => panic!("{error}\nin {plan:?}"),
    }
}

/// In the order of sending.
pub(crate) fn as_sent(verbs: &[Verb], faults: u8) -> Plan {
    Plan { order: Order::AsSent, ..Plan::new(verbs, faults) }
}

// T-4, T-6, T-8, T-14, C3, C4, C5.
#[test]
fn a_write_of_three_packets_survives_three_faults() {
    let tally = explore(&as_sent(&[Verb::Write(3)], 3));
    assert!(tally.states > 100_000, "the search skips states: {tally:?}");
}

// R-15, C10.
#[test]
fn two_writes_of_three_packets_survive_two_faults() {
    explore(&as_sent(&[Verb::Write(3), Verb::Write(3)], 2));
}

// R-8 without memory for maps: the counter and its fingerprint alone.
#[test]
fn writes_survive_two_faults_without_a_map() {
    explore(&Plan { maps: false, ..as_sent(&[Verb::Write(3), Verb::Write(1)], 2) });
}

//
#[test]
fn two_sends_survive_two_faults() {
    explore(&as_sent(&[Verb::Send(3), Verb::Send(2)], 2));
}

// R-12, T-10, B1, B4.
#[test]
fn sends_survive_a_fault_while_the_receive_is_missing() {
    let late = Receives::Late;
    explore(&Plan { receives: late, ..as_sent(&[Verb::Send(3)], 1) });
    explore(&Plan { receives: late, ..as_sent(&[Verb::WriteImm(2), Verb::Send(1)], 1) });
}

// R-9, T-15.
#[test]
fn reads_survive_two_faults() {
    explore(&as_sent(&[Verb::Read(3)], 2));
    explore(&as_sent(&[Verb::Read(2), Verb::Read(1)], 1));
}

// an atomic runs exactly once.
#[test]
fn an_atomic_survives_two_faults() {
    explore(&as_sent(&[Verb::FetchAdd], 2));
    explore(&as_sent(&[Verb::FetchAdd, Verb::Write(2)], 2));
}

#[test]
fn mixed_operations_survive_two_faults() {
    explore(&as_sent(&[Verb::Send(1), Verb::Read(2)], 2));
    explore(&as_sent(&[Verb::Read(2), Verb::Write(1)], 1));
    explore(&as_sent(&[Verb::WriteImm(3), Verb::Send(1)], 2));
}

// any order of arrival, on both ways.
#[test]
fn every_operation_survives_a_fault_in_any_order_of_arrival() {
    for verb in [Verb::Write(3), Verb::Send(3), Verb::WriteImm(2), Verb::Read(2), Verb::FetchAdd] {
        explore(&Plan::new(&[verb], 1));
    }
    explore(&Plan { maps: false, ..Plan::new(&[Verb::Write(2)], 1) });
    explore(&Plan::new(&[Verb::Write(2), Verb::Send(1)], 1));
}
