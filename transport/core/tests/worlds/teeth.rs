//! A checker that cannot fail checks nothing: links that break the rules are found out.

use dcp_pair::Side;
use dcp_wire::Kind;

use crate::plan::Verb;
use crate::search::{Meddle, search};
use crate::small::as_sent;
use crate::world::{Travel, World};

/// Offset of the last byte of the MSN.
const MSN_LOW: usize = 56;

fn found(verbs: &[Verb], faults: u8, meddle: Meddle) -> String {
    search(&as_sent(verbs, faults), meddle).expect_err("the checkers see it")
}

/// Data packets for the server that travel in a way.
fn data(world: &World, travel: Travel) -> Vec<usize> {
    let is_data = |index: &usize| {
        let flight = &world.flights[*index];
        flight.to == Side::Server && flight.travel == travel && matches!(flight.kind(), Kind::Data(_))
    };
    (0..world.flights.len()).filter(is_data).collect()
}

#[test]
fn a_changed_byte_is_found() {
    let error = found(&[Verb::Write(2)], 0, |world| {
        for index in data(world, Travel::Soon) {
            let mut frame = world.flights[index].frame.to_vec();
            *frame.last_mut().expect("no frame is empty") = 0xEE;
            world.replace(index, frame);
        }
    });
    assert!(error.starts_with("byte 255 of message 0 is not its own"), "{error}");
}

/// What the bounds on a packet's life are for: a late packet under a number that it does not have.
#[test]
fn a_write_after_completion_is_found() {
    let error = found(&[Verb::Write(1), Verb::Write(1)], 2, |world| {
        let completed = !world.hosts[Side::Client as usize].completions.is_empty();
        for index in data(world, Travel::Late).into_iter().filter(|_| completed) {
            let mut frame = world.flights[index].frame.to_vec();
            frame[MSN_LOW] = 0;
            frame[MSN_LOW - 1] = 0;
            frame[MSN_LOW - 2] = 0;
            world.replace(index, frame);
        }
    });
    assert!(error.starts_with("message 0 was written after its completion"), "{error}");
}

#[test]
fn a_link_that_carries_nothing_back_is_found() {
    let error = found(&[Verb::Write(1)], 0, |world| {
        world.flights.retain(|flight| flight.to == Side::Server);
    });
    assert!(error.starts_with("Client is in Error"), "{error}");
}

#[test]
fn a_completion_too_much_is_found() {
    let error = found(&[Verb::Send(1)], 0, |world| {
        let completions = &mut world.hosts[Side::Server as usize].completions;
        if let [only] = completions[..] {
            completions.push(only);
        }
    });
    assert!(error.starts_with("Server completes too much"), "{error}");
}

#[test]
fn a_lost_frame_that_nobody_misses_is_found() {
    // Time stops: without timers, a lost packet is never sent again.
    let error = found(&[Verb::Write(1)], 1, |world| world.stopped = true);
    assert!(error.starts_with("stops with completions [0, 0]"), "{error}");
}
