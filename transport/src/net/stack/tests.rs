use super::super::neighbours::{NEIGHBOURS_MAX, REQUESTS_MAX};
use super::*;

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
const MS: u64 = 1_000_000;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn at(ms: u64) -> Instant {
    Instant::from_ns(ms * MS)
}

/// A stack that has announced itself.
fn stack(mac: MacAddr, last: u8) -> NetStack {
    let interface = format!("10.0.0.{last}/16").parse().unwrap();
    let config = IpConfig::new(interface, Some(Ipv4Addr::new(10, 0, 200, 200))).unwrap();
    let mut stack = NetStack::new(mac, config);
    assert_eq!(stack.next_timeout(), Some(Instant::ZERO));
    assert!(stack.poll_transmit(at(0)).is_some());
    assert_eq!(stack.poll_transmit(at(0)), None);
    stack
}

#[test]
fn two_stacks_resolve_each_other_with_one_question() {
    let (mut a, mut b) = (stack(A, 1), stack(B, 2));
    assert_eq!(a.resolve(at(0), ip(2)), Ok(Resolution::Pending));
    let mut frame = a.poll_transmit(at(0)).unwrap();
    assert_eq!(a.poll_transmit(at(0)), None);
    assert_eq!(b.handle_frame(at(1), &mut frame), NetAnswer::Send(ARP_LEN));
    assert_eq!(frame[..6], A.0);
    assert_eq!(a.handle_frame(at(2), &mut frame), NetAnswer::Taken);
    assert_eq!(a.resolve(at(2), ip(2)), Ok(Resolution::Known(B)));
    // Who asked is known too.
    assert_eq!(b.resolve(at(2), ip(1)), Ok(Resolution::Known(A)));
    assert_eq!((a.next_timeout(), b.next_timeout()), (None, None));
    let expected = NetCounters { arp_requested: 1, arp_learnt: 1, ..NetCounters::default() };
    assert_eq!(*a.counters(), expected);
    let expected = NetCounters { arp_answered: 1, arp_learnt: 1, ..NetCounters::default() };
    assert_eq!(*b.counters(), expected);
}

#[test]
fn silent_neighbour_is_asked_five_times_and_given_up_after_3_seconds() {
    let mut a = stack(A, 1);
    assert_eq!(a.resolve(at(0), ip(2)), Ok(Resolution::Pending));
    let mut asked = Vec::new();
    for ms in 0..5000 {
        if a.poll_transmit(at(ms)).is_some() {
            asked.push(ms);
        }
    }
    assert_eq!(asked, [0, 100, 300, 700, 1500]);
    assert_eq!(asked.len(), REQUESTS_MAX as usize);
    assert_eq!(a.next_timeout(), None);
    // It was given up at 3100 ms; resolving it later begins anew.
    assert_eq!(a.resolve(at(4000), ip(2)), Ok(Resolution::Unreachable));
    assert_eq!(a.resolve(at(4100), ip(2)), Ok(Resolution::Pending));
    assert!(a.poll_transmit(at(4100)).is_some());
}

#[test]
fn routed_peer_resolves_to_the_gateway() {
    let mut a = stack(A, 1);
    let far = Ipv4Addr::new(192, 168, 0, 1);
    assert_eq!(a.resolve(at(0), far), Ok(Resolution::Pending));
    let frame = a.poll_transmit(at(0)).unwrap();
    assert_eq!(frame[38..], [10, 0, 200, 200]);
    let alone = IpConfig::new("10.0.0.1/24".parse().unwrap(), None).unwrap();
    assert!(NetStack::new(A, alone).resolve(at(0), far).is_err());
}

#[test]
fn own_address_needs_no_question() {
    let mut a = stack(A, 1);
    assert_eq!(a.resolve(at(0), ip(1)), Ok(Resolution::Known(A)));
}

#[test]
fn address_that_is_a_minute_old_is_asked_for_again() {
    let (mut a, mut b) = (stack(A, 1), stack(B, 2));
    let mut frame = Arp::request(A, ip(1), ip(2)).frame(BROADCAST);
    assert_eq!(b.handle_frame(at(0), &mut frame), NetAnswer::Send(ARP_LEN));
    assert_eq!(a.handle_frame(at(0), &mut frame), NetAnswer::Taken);
    assert_eq!(b.resolve(at(59_999), ip(1)), Ok(Resolution::Known(A)));
    assert_eq!(b.resolve(at(60_000), ip(1)), Ok(Resolution::Pending));
}

#[test]
fn announcement_updates_who_is_known_and_adds_nobody() {
    let mut b = stack(B, 2);
    let moved = MacAddr([2, 0, 0, 0, 0, 0xc]);
    let announcement = |mac| Arp::request(mac, ip(1), ip(1)).frame(BROADCAST);
    assert_eq!(b.handle_frame(at(0), &mut announcement(A)), NetAnswer::Ignored);
    assert_eq!(b.resolve(at(0), ip(1)), Ok(Resolution::Pending));
    assert_eq!(b.handle_frame(at(0), &mut announcement(A)), NetAnswer::Ignored);
    assert_eq!(b.resolve(at(0), ip(1)), Ok(Resolution::Known(A)));
    assert_eq!(b.handle_frame(at(0), &mut announcement(moved)), NetAnswer::Ignored);
    assert_eq!(b.resolve(at(0), ip(1)), Ok(Resolution::Known(moved)));
}

#[test]
fn conflicts_are_counted_and_probes_answered_but_not_remembered() {
    let mut a = stack(A, 1);
    let mut claim = Arp::request(B, ip(1), ip(1)).frame(BROADCAST);
    assert_eq!(a.handle_frame(at(0), &mut claim), NetAnswer::Ignored);
    assert_eq!(a.counters().address_conflicts, 1);
    let mut probe = Arp::request(B, Ipv4Addr::UNSPECIFIED, ip(1)).frame(BROADCAST);
    assert_eq!(a.handle_frame(at(0), &mut probe), NetAnswer::Send(ARP_LEN));
    assert!(a.neighbours == Neighbours::default());
}

#[test]
fn noise_is_ignored_and_counted() {
    let mut a = stack(A, 1);
    let mut own = Arp::request(A, ip(1), ip(2)).frame(BROADCAST);
    let mut others = Arp::request(B, ip(2), ip(3)).frame(BROADCAST);
    let mut state = 7u32;
    let mut seen = 2;
    assert_eq!(a.handle_frame(at(0), &mut own), NetAnswer::Ignored);
    assert_eq!(a.handle_frame(at(0), &mut others), NetAnswer::Ignored);
    for len in (0..200).cycle().take(20_000) {
        let mut frame: Vec<u8> = (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect();
        // Past the first check, to the parsers.
        if len > 13 && state & 3 != 0 {
            frame[12..14].copy_from_slice(if state & 1 == 0 { &ETHERTYPE_ARP } else { &[8, 0] });
        }
        assert_eq!(a.handle_frame(at(0), &mut frame), NetAnswer::Ignored);
        seen += 1;
    }
    assert_eq!(*a.counters(), NetCounters { ignored: seen, ..NetCounters::default() });
}

#[test]
fn table_is_bounded_and_the_oldest_makes_room() {
    let mut a = stack(A, 1);
    let neighbour = |n: usize| {
        Ipv4Addr::new(10, 0, 1 + u8::try_from(n / 200).unwrap(), u8::try_from(n % 200).unwrap() + 1)
    };
    for n in 0..NEIGHBOURS_MAX {
        assert_eq!(a.resolve(at(0), neighbour(n)), Ok(Resolution::Pending));
    }
    assert_eq!(a.resolve(at(0), neighbour(NEIGHBOURS_MAX)), Ok(Resolution::Full));
    for (n, ms) in [(5, 1), (6, 2)] {
        let mut answer = Arp { is_request: false, ..Arp::request(B, neighbour(n), ip(1)) }.frame(A);
        assert_eq!(a.handle_frame(at(ms), &mut answer), NetAnswer::Taken);
    }
    assert_eq!(a.resolve(at(3), neighbour(NEIGHBOURS_MAX)), Ok(Resolution::Pending));
    assert_eq!(a.resolve(at(3), neighbour(6)), Ok(Resolution::Known(B)));
    // The one heard of first is gone, and takes the place of the other.
    assert_eq!(a.resolve(at(3), neighbour(5)), Ok(Resolution::Pending));
    assert_eq!(a.resolve(at(3), neighbour(6)), Ok(Resolution::Full));
}
