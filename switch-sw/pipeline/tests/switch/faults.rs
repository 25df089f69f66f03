//! S-7: injected faults, seeded.

use crate::support::*;
use dcp_pipeline::*;

fn run(seed: u64, faults: FaultConfig, frames: usize) -> (Vec<u32>, PortCounters) {
    let mut switch = switch(PipelineConfig { seed, faults: vec![faults; 3], ..config(3) });
    let mut lengths = Vec::new();
    for number in 0..frames {
        arrive(&mut switch, 0, 1, What::Data(number % 1000));
        lengths.extend(sent(&mut switch, 1).iter().map(Frame::len));
        assert_balanced(&switch);
    }
    (lengths, switch.totals())
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let faults = FaultConfig {
        drop: Probability::from_ppm(20_000),
        trim: Probability::from_ppm(30_000),
        duplicate: Probability::from_ppm(40_000),
        ..FaultConfig::NONE
    };
    assert_eq!(run(7, faults, 3000), run(7, faults, 3000));
    assert_ne!(run(7, faults, 3000).0, run(8, faults, 3000).0);
}

#[test]
fn faults_come_at_their_rates_and_are_counted() {
    let faults = FaultConfig {
        drop: Probability::from_ppm(100_000),
        trim: Probability::from_ppm(200_000),
        duplicate: Probability::from_ppm(300_000),
        ..FaultConfig::NONE
    };
    let (lengths, totals) = run(3, faults, 20_000);
    let near =
        |got: u64, expected: u64| assert!(got.abs_diff(expected) < expected / 10, "{got} for {expected}");
    near(totals.ingress.drops.get(DropReason::Injected), 2_000);
    near(totals.ingress.duplicated, 18_000 * 3 / 10);
    near(totals.egress.trimmed_forwarded, 18_000 * 13 / 10 * 2 / 10);
    // Duplicates are offered like any other frame.
    assert_eq!(totals.egress.offered, 20_000 - totals.ingress.drops.total() + totals.ingress.duplicated);
    assert_eq!(lengths.len() as u64, totals.egress.offered);
}

#[test]
fn one_fault_does_not_move_the_dice_of_another() {
    let trims = |faults| run(5, faults, 2000).1.egress.trimmed;
    let trim = FaultConfig { trim: Probability::from_ppm(100_000), ..FaultConfig::NONE };
    let duplicated =
        run(5, FaultConfig { duplicate: Probability::from_ppm(100_000), ..FaultConfig::NONE }, 2000);
    let both = run(5, FaultConfig { duplicate: Probability::from_ppm(100_000), ..trim }, 2000);
    assert_eq!(duplicated.1.ingress.duplicated, both.1.ingress.duplicated);
    assert!(trims(trim) > 100);
}

#[test]
fn ports_have_dice_of_their_own() {
    let faults = FaultConfig { drop: Probability::from_ppm(500_000), ..FaultConfig::NONE };
    let mut switch = switch(PipelineConfig { faults: vec![faults; 3], ..config(3) });
    let mut fates = [Vec::new(), Vec::new()];
    for _ in 0..64 {
        for from in 0..2 {
            arrive(&mut switch, from, 2, What::Ack);
            fates[usize::from(from)].push(sent(&mut switch, 2).len());
        }
    }
    assert_ne!(fates[0], fates[1]);
}

#[test]
fn a_forced_trim_spares_what_is_not_data() {
    let faults = FaultConfig { trim: Probability::ALWAYS, ..FaultConfig::NONE };
    let mut switch = switch(PipelineConfig { faults: vec![faults; 2], ..config(2) });
    for what in [What::Data(700), What::Ack, What::Cnp, What::HeaderOnly, What::Other(700)] {
        arrive(&mut switch, 0, 1, what);
    }
    let egress = switch.counters(PortId(1)).egress;
    assert_eq!(egress.trimmed, 1);
    let mut lengths: Vec<u32> = sent(&mut switch, 1).iter().map(Frame::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [57, 57, 62, 70, 773], "the data packet is the second 57");
}

#[test]
fn faults_can_be_turned_on_and_off() {
    let mut switch = switch(config(2));
    switch.set_faults(PortId(0), FaultConfig { drop: Probability::ALWAYS, ..FaultConfig::NONE });
    arrive(&mut switch, 0, 1, What::Ack);
    arrive(&mut switch, 1, 0, What::Ack);
    switch.set_faults(PortId(0), FaultConfig::NONE);
    arrive(&mut switch, 0, 1, What::Ack);
    assert_eq!(sent(&mut switch, 1).len(), 1);
    assert_eq!(sent(&mut switch, 0).len(), 1, "the other direction is not concerned");
    assert_balanced(&switch);
}
