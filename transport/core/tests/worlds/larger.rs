//! The worlds that take minutes: run by hand, with `-- --ignored --nocapture`.

use crate::plan::{Plan, Receives, Verb};
use crate::small::{as_sent, explore};

#[test]
#[ignore = "minutes"]
fn two_writes_of_three_packets_survive_three_faults() {
    explore(&as_sent(&[Verb::Write(3), Verb::Write(3)], 3));
}

#[test]
#[ignore = "minutes"]
fn two_sends_of_three_packets_survive_three_faults() {
    explore(&as_sent(&[Verb::Send(3), Verb::Send(3)], 3));
}

#[test]
#[ignore = "minutes"]
fn late_receives_and_two_faults() {
    explore(&Plan { receives: Receives::Late, ..as_sent(&[Verb::Send(2)], 2) });
    explore(&Plan { receives: Receives::Late, ..as_sent(&[Verb::Send(3)], 2) });
}

#[test]
#[ignore = "minutes"]
fn reads_of_three_packets_survive_three_faults() {
    explore(&as_sent(&[Verb::Read(3)], 3));
    explore(&as_sent(&[Verb::Read(3), Verb::Read(3)], 2));
}

#[test]
#[ignore = "minutes"]
fn mixes_survive_three_faults() {
    explore(&as_sent(&[Verb::Write(3), Verb::Read(2)], 3));
    explore(&as_sent(&[Verb::Read(2), Verb::Send(2)], 2));
}

#[test]
#[ignore = "minutes"]
fn writes_survive_two_faults_in_any_order_of_arrival() {
    explore(&Plan::new(&[Verb::Write(3)], 2));
    explore(&Plan::new(&[Verb::Write(3), Verb::Write(3)], 1));
    explore(&Plan::new(&[Verb::Write(2), Verb::Write(2)], 2));
}
