//! C1, A3, A5: numbers of 24 and 12 bits.

use dcp_wire::*;
use proptest::prelude::*;

// C1
#[test]
fn serial_distance_of_24_bits_is_golden() {
    let golden = [
        (0, 0xFF_FFFF, 1),
        (0xFF_FFFF, 0, -1),
        (5, 0xFF_FFFE, 7),
        (0x7F_FFFF, 0, 8_388_607),
        (0x80_0000, 0, -8_388_608),
        (7, 7, 0),
    ];
    for (number, origin, distance) in golden {
        assert_eq!(Msn::new(number).unwrap().since(Msn::new(origin).unwrap()), distance);
        assert_eq!(Ssn::new(number).unwrap().since(Ssn::new(origin).unwrap()), distance);
        assert_eq!(Msn::new(number).unwrap().is_before(Msn::new(origin).unwrap()), distance < 0);
    }
}

// A5
#[test]
fn numbers_beyond_their_field_are_refused() {
    for value in [SPACE_24, SPACE_24 + 1, u32::MAX] {
        assert_eq!(Msn::new(value), None);
        assert_eq!(Ssn::new(value), None);
        assert_eq!(Psn::new(value), None);
        assert_eq!(Qpn::new(value), None);
    }
    assert_eq!(Msn::new(SPACE_24 - 1).map(Msn::get), Some(0xFF_FFFF));
    assert_eq!(Generation::new(4096), None);
    assert_eq!(Generation::new(4095).map(Generation::get), Some(4095));
    assert_eq!(RnrTimer::new(32), None);
    assert_eq!(RnrTimer::new(31).map(RnrTimer::get), Some(31));
}

#[test]
fn serial_numbers_wrap() {
    let last = Msn::new(0xFF_FFFF).unwrap();
    assert_eq!(last.next(), Msn::ZERO);
    assert_eq!(last.plus(3).get(), 2);
    assert_eq!(Msn::ZERO.plus(u32::MAX), last);
    assert_eq!(Msn::new(1).unwrap().index_in(last, 3), Some(2));
    assert_eq!(Msn::new(1).unwrap().index_in(last, 2), None);
    assert_eq!(Msn::new(0xFF_FFFE).unwrap().index_in(last, 128), None);
}

#[test]
fn a_generation_is_newer_up_to_fifteen_ahead() {
    let at = |value| Generation::new(value).unwrap();
    for base in [0, 5, 4090, 4095] {
        for ahead in 0..4096 {
            let other = at((base + ahead) % 4096);
            assert_eq!(other.is_newer_than(at(base)), (1..=15).contains(&ahead), "{base} + {ahead}");
        }
    }
    assert_eq!(at(4095).next(), Generation::ZERO);
}

proptest! {
    // Twin: the same in wide integers.
    #[test]
    fn serial_distance_undoes_addition(origin in 0u32..SPACE_24, steps in -(1i32 << 23)..1 << 23) {
        let number = (i64::from(origin) + i64::from(steps)).rem_euclid(i64::from(SPACE_24));
        let number = Msn::new(u32::try_from(number).unwrap()).unwrap();
        prop_assert_eq!(number.since(Msn::new(origin).unwrap()), steps);
    }
}
