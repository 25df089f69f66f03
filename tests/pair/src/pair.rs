//! Two hosts and the link between them, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dcp_core::{Completion, Instant, PostError, QpState, RecvRequest, Remote, SendOp, SendRequest, Status};

use crate::host::{Host, MR_VA};
use crate::script::Script;
use crate::setup::{self, PairConfig};

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The one that connects.
    Client = 0,
    /// The other one.
    Server = 1,
}

impl Side {
    /// The other host.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What [`Pair::step`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Something happened.
    Moved,
    /// Nothing is under way; time stands.
    Quiet,
    /// Nothing happens before the end; it is the end now.
    Waiting,
}

/// Two endpoints and a link.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Both hosts, by [`Side`].
    pub hosts: [Host; 2],
    /// Virtual time.
    pub now: Instant,
    /// Control frames that left behind data in one poll, against T-2.
    pub starved: u64,
    flying: BinaryHeap<Reverse<Flight>>,
    sent: u64,
    config: PairConfig,
    /// Restarts so far: each makes new keys.
    epoch: u16,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Flight {
    at: Instant,
    order: u64,
    to: Side,
    /// When it reached the host, where it waits for its turn.
    arrived: Option<Instant>,
    frame: Vec<u8>,
}

/// Frames that a host may hand to the wire in one poll.
const ROOM: usize = 8;

impl Pair {
    /// Two hosts, connected.
    pub fn new(config: PairConfig) -> Self {
        let mut pair = Self {
            hosts: [setup::new_host(Side::Client, &config), setup::new_host(Side::Server, &config)],
            now: Instant::ZERO,
            starved: 0,
            flying: BinaryHeap::new(),
            sent: 0,
            config,
            epoch: 0,
        };
        pair.connect();
        pair
    }

    /// The host of `side` is gone with all it knew, and one with the same addresses and queue pair numbers takes its
    /// place. The other one's queue pairs fail and are connected to it, with new keys and the same first numbers.
    /// What flies still arrives.
    pub fn restart(&mut self, side: Side) {
        self.epoch += 1;
        let config = self.config;
        *self.host_mut(side) = setup::new_host(side, &config);
        let survivor = self.host_mut(side.peer());
        for qp in survivor.qps.clone() {
            survivor.endpoint.modify_to_error(qp).expect("it is in use");
            survivor.collect();
            survivor.endpoint.modify_to_reset(qp);
        }
        self.connect();
    }

    fn connect(&mut self) {
        let [client, server] = &mut self.hosts;
        setup::connect_all(client, server, self.epoch, &self.config);
    }

    /// The worker of `side` does not run for `ns`: frames wait for it, timers do not run out (T-8).
    pub fn pause(&mut self, side: Side, ns: u64) {
        let (now, until) = (self.now, self.now.after(ns));
        let host = self.host_mut(side);
        host.away = Some((host.away.map_or(now, |(since, _)| since), until));
        host.busy_until = host.busy_until.max(until);
    }

    /// The host on a side.
    pub fn host(&self, side: Side) -> &Host {
        &self.hosts[side as usize]
    }

    /// The host on a side.
    pub fn host_mut(&mut self, side: Side) -> &mut Host {
        &mut self.hosts[side as usize]
    }

    /// Posts a signalled WRITE on queue pair `qp` from `from` in `side`'s memory to `to` in its peer's.
    ///
    /// # Errors
    /// As [`dcp_core::Endpoint::post_send`].
    pub fn write(&mut self, side: Side, qp: usize, wr_id: u64, range: WriteRange) -> Result<(), PostError> {
        let rkey = self.host(side.peer()).keys.rkey;
        let host = self.host_mut(side);
        let sges = [host.sge(range.from, range.len)];
        let op = SendOp::Write(Remote { va: MR_VA + range.to, rkey });
        host.endpoint.post_send(host.qps[qp], &SendRequest::new(wr_id, op, &sges))
    }

    /// Posts a signalled request on queue pair `qp` with bytes at `from` (offset, length) in `side`'s memory.
    ///
    /// # Errors
    /// As [`dcp_core::Endpoint::post_send`].
    pub fn post(
        &mut self,
        side: Side,
        qp: usize,
        wr_id: u64,
        op: SendOp,
        from: (u64, u32),
    ) -> Result<(), PostError> {
        let host = self.host_mut(side);
        let sges = [host.sge(from.0, from.1)];
        host.endpoint.post_send(host.qps[qp], &SendRequest::new(wr_id, op, &sges))
    }

    /// Posts a receive on queue pair `qp` into `to` (offset, length) in `side`'s memory.
    ///
    /// # Errors
    /// As [`dcp_core::Endpoint::post_recv`].
    pub fn receive(&mut self, side: Side, qp: usize, wr_id: u64, to: (u64, u32)) -> Result<(), PostError> {
        let host = self.host_mut(side);
        let sges = [host.sge(to.0, to.1)];
        host.endpoint.post_recv(host.qps[qp], &RecvRequest { wr_id, sges: &sges })
    }

    /// A place in the memory of `side`'s peer.
    pub fn remote(&self, side: Side, to: u64) -> Remote {
        Remote { va: MR_VA + to, rkey: self.host(side.peer()).keys.rkey }
    }

    /// Runs until nothing is under way any more, or until `limit_ns` later. True: all is quiet.
    pub fn run(&mut self, script: &mut impl Script, limit_ns: u64) -> bool {
        let end = self.now.after(limit_ns);
        loop {
            match self.step(script, end) {
                Step::Moved => {}
                Step::Quiet => return true,
                Step::Waiting => return false,
            }
        }
    }

    /// What may leave now leaves; then time moves to the next event, if that is not after `end`.
    pub fn step(&mut self, script: &mut impl Script, end: Instant) -> Step {
        self.transmit(script);
        self.hosts.iter_mut().for_each(Host::collect);
        if self.is_quiet() {
            return Step::Quiet;
        }
        match self.next_event().filter(|&next| next <= end) {
            Some(next) => self.now = self.now.max(next),
            None => {
                self.now = end;
                return Step::Waiting;
            }
        }
        self.deliver(script);
        for host in &mut self.hosts {
            host.handle_time(self.now);
        }
        Step::Moved
    }

    /// Nothing flies, nothing waits to leave, every work request has completed.
    pub fn is_quiet(&self) -> bool {
        self.flying.is_empty()
            && self.hosts.iter().all(|host| host.outstanding() == 0 && !host.endpoint.has_frames())
    }

    fn next_event(&self) -> Option<Instant> {
        let flight = self.flying.peek().map(|Reverse(flight)| flight.at);
        let timer = |host: &Host| match host.away {
            Some((_, until)) => Some(until),
            None => host.endpoint.next_timeout(),
        };
        let timers = self.hosts.iter().filter_map(timer);
        let transmitters =
            self.hosts.iter().filter(|host| host.endpoint.has_frames()).map(|host| host.busy_until);
        flight.into_iter().chain(timers).chain(transmitters).min()
    }

    fn transmit(&mut self, script: &mut impl Script) {
        for side in [Side::Client, Side::Server] {
            let (now, gbps) = (self.now, self.config.link_gbps);
            let host = self.host_mut(side);
            if host.busy_until > now {
                continue;
            }
            let frames = host.transmit(now, ROOM);
            let bits: u64 = frames.iter().map(|frame| frame.len() as u64 * 8).sum();
            host.busy_until = now.after(bits.div_ceil(gbps));
            let data = frames.iter().position(|frame| is_data(frame)).unwrap_or(frames.len());
            self.starved += frames[data..].iter().filter(|frame| !is_data(frame)).count() as u64;
            for frame in frames {
                self.fly(side, frame, script);
            }
        }
    }

    /// Puts a frame on the link.
    pub fn fly(&mut self, from: Side, frame: Vec<u8>, script: &mut impl Script) {
        for copy in script.copies(from, &self.host(from).view(&frame)) {
            let mut frame = frame.clone();
            if copy.mark {
                // What is not ECN-capable stays as it is.
                let _ = dcp_wire::mark_ce(&mut frame);
            }
            if copy.trim {
                let len = dcp_wire::trim(&mut frame).expect("endpoints emit DCP frames");
                frame.truncate(len);
            }
            if let Some(bit) = copy.flip {
                let bit = bit % (frame.len() as u64 * 8);
                frame[bit as usize / 8] ^= 1 << (bit % 8);
            }
            self.sent += 1;
            let at = self.now.after(copy.delay_ns);
            self.flying.push(Reverse(Flight { at, order: self.sent, to: from.peer(), arrived: None, frame }));
        }
    }

    fn deliver(&mut self, script: &mut impl Script) {
        while self.flying.peek().is_some_and(|Reverse(flight)| flight.at <= self.now) {
            let Some(Reverse(Flight { to, frame, order, arrived, .. })) = self.flying.pop() else { return };
            let now = self.now;
            if arrived.is_none() && self.host(to).intake_gbps > 0 {
                let at = self.host_mut(to).take_in(now, frame.len());
                self.flying.push(Reverse(Flight { at, order, to, arrived: Some(now), frame }));
                continue;
            }
            if let Some((_, until)) = self.host(to).away {
                if self.host(to).is_away(now) {
                    self.flying.push(Reverse(Flight { at: until, order, to, arrived, frame }));
                    continue;
                }
                self.host_mut(to).handle_time(now);
            }
            if let Some(bounced) = self.host_mut(to).receive_arrived(now, arrived.unwrap_or(now), frame) {
                self.fly(to, bounced, script);
            }
        }
    }

    /// State of a side's queue pair.
    pub fn state(&self, side: Side, qp: usize) -> QpState {
        let host = self.host(side);
        host.endpoint.qp_state(host.qps[qp])
    }

    /// wr_id and status of a side's completions, in order.
    pub fn statuses(&self, side: Side) -> Vec<(u64, Status)> {
        self.host(side).completions.iter().map(|c: &Completion| (c.wr_id, c.status)).collect()
    }
}

/// Source offset, destination offset and length of a WRITE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteRange {
    /// Offset in the writer's memory.
    pub from: u64,
    /// Offset in its peer's memory.
    pub to: u64,
    /// Bytes.
    pub len: u32,
}

/// The frame carries a packet of a message (tag 10).
fn is_data(frame: &[u8]) -> bool {
    frame[15] >> 2 & 3 == 2
}
