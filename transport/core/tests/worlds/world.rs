//! The state of a world, and the events that lead from one to the next.

use std::rc::Rc;

use dcp_core::{Instant, Mixer, RecvRequest};
use dcp_pair::{Host, Side};
use dcp_wire::{HO_LEN, Headers, Kind, ParseOptions};

use crate::checks::Ledger;
use crate::plan::{Order, Plan, Receives};

pub(crate) const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Frames that one poll may hand over: more than any world has.
const ROOM: usize = 64;
/// Where the timestamps of a PROBE_ACK begin.
const PROBE_ACK_TIMES: usize = 62;
/// Timeouts after which a late receive is posted at the latest.
const LATE_TICKS: u8 = 2;

/// How a frame travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Travel {
    /// Just sent: its fate is not decided.
    Fresh,
    /// Arrives before time goes on.
    Soon,
    /// Does not arrive before a timer has run out.
    Held,
    /// Was held, and may arrive at any time from now on.
    Late,
}

#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) to: Side,
    pub(crate) travel: Travel,
    pub(crate) frame: Rc<Vec<u8>>,
    is_data: bool,
    hash: u64,
}

impl Flight {
    fn new(to: Side, frame: Vec<u8>) -> Self {
        let mut told = frame.clone();
        // What a probe says of clocks decides nothing in here, and would tell equal states apart.
        match parse(&frame).kind {
            Kind::Probe(_) => told[HO_LEN - 3..].fill(0),
            Kind::ProbeAck(_) => told[PROBE_ACK_TIMES..].fill(0),
            _ => {}
        }
        let hash = fold(to as u64, &told);
        let is_data = matches!(parse(&frame).kind, Kind::Data(_));
        Self { to, travel: Travel::Fresh, frame: Rc::new(frame), is_data, hash }
    }

    /// Whether both wait in one queue of the link.
    fn is_behind(&self, other: &Self) -> bool {
        other.travel == Travel::Soon && (self.to, self.is_data) == (other.to, other.is_data)
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.hash, self.travel) == (other.hash, other.travel)
    }

    pub(crate) fn kind(&self) -> Kind {
        parse(&self.frame).kind
    }
}

fn parse(frame: &[u8]) -> Headers {
    dcp_wire::parse_frame(ParseOptions::default(), frame).expect("endpoints emit legal frames").headers
}

/// What the link does to a frame that it does not simply deliver; each is one fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Drop,
    Trim,
    Duplicate,
    Hold,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) hosts: [Host; 2],
    pub(crate) now: Instant,
    pub(crate) flights: Vec<Flight>,
    pub(crate) faults: u8,
    /// Receives that the server has not posted yet.
    pub(crate) to_post: Vec<usize>,
    ticks: u8,
    order: Order,
    /// No timer runs out any more.
    pub(crate) stopped: bool,
    pub(crate) ledger: Ledger,
}

impl World {
    /// The beginning: everything posted, the first frames on the wire.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut world = Self {
            hosts: plan.hosts(),
            now: Instant::ZERO.after(1_000_000),
            flights: Vec::new(),
            faults: plan.faults,
            to_post: plan.two_sided().collect(),
            ticks: 0,
            order: plan.order,
            stopped: false,
            ledger: Ledger::default(),
        };
        if plan.receives == Receives::Early {
            while !world.to_post.is_empty() {
                world.post_receive(plan);
            }
        }
        world.transmit();
        world
    }

    /// Posts the next receive, with just the room that its message needs.
    pub(crate) fn post_receive(&mut self, plan: &Plan) {
        let index = self.to_post.remove(0);
        let host = &mut self.hosts[Side::Server as usize];
        let len = match plan.verbs[index] {
            crate::plan::Verb::WriteImm(_) => 0,
            verb => verb.len() as u32,
        };
        let sges = [host.sge(Plan::at(index) as u64, len)];
        let request = RecvRequest { wr_id: index as u64, sges: &sges };
        host.endpoint.post_recv(host.qps[0], &request).expect("room in the queue");
    }

    fn transmit(&mut self) {
        for side in SIDES {
            let host = &mut self.hosts[side as usize];
            let frames = host.transmit(self.now, ROOM);
            assert!(!host.endpoint.has_frames(), "one poll sends all");
            host.collect();
            for frame in frames {
                self.ledger.note_frame(side, &frame);
                self.flights.push(Flight::new(side.peer(), frame));
            }
        }
    }

    /// A frame whose fate is to be decided.
    pub(crate) fn fresh(&self) -> Option<usize> {
        self.flights.iter().position(|flight| flight.travel == Travel::Fresh)
    }

    /// What may become of a fresh frame beside being delivered.
    pub(crate) fn faults_of(&self, index: usize) -> &'static [Fault] {
        match self.flights[index].kind() {
            _ if self.faults == 0 => &[],
            Kind::Data(_) => &[Fault::Drop, Fault::Trim, Fault::Duplicate, Fault::Hold],
            _ => &[Fault::Drop, Fault::Duplicate, Fault::Hold],
        }
    }

    pub(crate) fn apply_fault(&mut self, index: usize, fault: Fault) {
        self.faults -= 1;
        match fault {
            Fault::Drop => {
                self.flights.remove(index);
            }
            Fault::Trim => {
                let flight = self.flights.remove(index);
                let mut frame = flight.frame.to_vec();
                let len = dcp_wire::trim(&mut frame).expect("endpoints emit DCP frames");
                frame.truncate(len);
                self.flights.insert(index, Flight::new(flight.to, frame));
            }
            Fault::Duplicate => {
                // One copy arrives; the fate of the other is open.
                let copy = Flight { travel: Travel::Soon, ..self.flights[index].clone() };
                self.flights.insert(index, copy);
            }
            Fault::Hold => {
                let held = if self.order == Order::Any { Travel::Held } else { Travel::Late };
                self.flights[index].travel = held;
            }
        }
    }

    /// Frames that may arrive next; of equal ones, one.
    pub(crate) fn deliverable(&self) -> Vec<usize> {
        let all = 0..self.flights.len();
        all.filter(|&index| {
            let flight = &self.flights[index];
            let ahead = &self.flights[..index];
            let known = ahead.iter().any(|other| other.is_same(flight));
            let waits = self.order == Order::AsSent
                && flight.travel == Travel::Soon
                && ahead.iter().any(|other| flight.is_behind(other));
            !known && !waits && matches!(flight.travel, Travel::Soon | Travel::Late)
        })
        .collect()
    }

    pub(crate) fn deliver(&mut self, index: usize) {
        let Flight { to, frame, .. } = self.flights.remove(index);
        let frame = Rc::unwrap_or_clone(frame);
        if let Some(bounced) = self.hosts[to as usize].receive(self.now, frame) {
            self.flights.push(Flight::new(to.peer(), bounced));
        }
        self.transmit();
    }

    /// Changes a frame on the wire, as no link may.
    pub(crate) fn replace(&mut self, index: usize, frame: Vec<u8>) {
        let Flight { to, travel, .. } = self.flights[index];
        self.flights[index] = Flight { travel, ..Flight::new(to, frame) };
    }

    /// When time may go on: nothing arrives before the next timer runs out.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let waits = self.flights.iter().all(|flight| matches!(flight.travel, Travel::Held | Travel::Late));
        let must_post = !self.to_post.is_empty() && self.ticks >= LATE_TICKS;
        let idle = self.is_done() && self.flights.is_empty();
        if !waits || must_post || idle || self.stopped {
            return None;
        }
        self.hosts.iter().filter_map(|host| host.endpoint.next_timeout()).min()
    }

    pub(crate) fn tick(&mut self, at: Instant) {
        self.now = self.now.max(at);
        self.ticks += u8::from(!self.to_post.is_empty());
        for host in &mut self.hosts {
            host.endpoint.handle_timeout(self.now);
        }
        for flight in &mut self.flights {
            flight.travel = Travel::Late;
        }
        self.transmit();
    }

    /// Nothing is posted, sent or answered that is not completed and acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.hosts.iter().all(|host| host.outstanding() == 0) && self.to_post.is_empty()
    }

    /// Equal for states with equal futures: both endpoints, both memories, what was reported, frames on the wire, as a
    /// multiset where their order does not matter.
    pub(crate) fn hash(&self) -> u64 {
        let ticks = if self.to_post.is_empty() { 0 } else { self.ticks };
        let mut hash = self.to_post.len() as u64 | u64::from(ticks) << 8;
        for host in &self.hosts {
            let endpoint = &host.endpoint;
            hash = Mixer::mix(hash ^ endpoint.state_hash(self.now));
            hash = Mixer::mix(hash ^ u64::from(endpoint.has_timer(host.qps[0])));
            hash = fold(hash ^ host.completions.len() as u64, &host.memory);
        }
        let mut queues = [0u64; 4];
        let mut flights = 0u64;
        for flight in &self.flights {
            let mut word = Mixer::mix(flight.hash ^ flight.travel as u64);
            if self.order == Order::AsSent && flight.travel != Travel::Late {
                let queue = &mut queues[flight.to as usize * 2 + usize::from(flight.is_data)];
                *queue = Mixer::mix(*queue ^ word);
                word = *queue;
            }
            flights = flights.wrapping_add(word);
        }
        Mixer::mix(hash ^ flights ^ self.ledger.hash())
    }
}

fn fold(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let hash = words.iter().fold(seed, |hash, &word| step(hash, u64::from_le_bytes(word)));
    Mixer::mix(rest.iter().fold(hash, |hash, &byte| step(hash, byte.into())) ^ bytes.len() as u64)
}
