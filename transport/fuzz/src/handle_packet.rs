//! A connected pair with work outstanding both ways, on a link that does anything: genuine frames in any order, lost,
//! trimmed, doubled, with bytes changed, and frames made up by somebody who knows the connection's key.
//!
//! Whatever comes: no panic, no byte written outside what is registered, every completion once and in order, and a
//! timer armed while anything is in flight (C11).

use std::sync::OnceLock;

use dcp_core::{Access, Instant, MrAttr, QpConfig, QpState, RecvRequest, RegionId, Remote, SendOp};
use dcp_pair::{Host, MR_VA, Pair, PairConfig, Side};
use dcp_wire::ImmData;

use super::input::Input;
use super::parse::mend;

/// Set-ups: three kinds of queue pairs, with and without memory for maps.
const CHOICES: u8 = 6;
const SIDES: [Side; 2] = [Side::Client, Side::Server];
const MEMORY: usize = 8192;
/// What is registered of it; the rest must keep its bytes.
const REGISTERED: std::ops::Range<usize> = 2048..6144;
const GUARD: u8 = 0xA5;
/// Frames kept on each way; what is beyond is lost.
const QUEUE_MAX: usize = 64;
/// Steps of one run.
const STEPS_MAX: usize = 400;
const DEPTH: u32 = 8;
const MTU: u32 = 256;

#[derive(Clone)]
struct Link {
    hosts: [Host; 2],
    now: Instant,
    /// Frames under way to each side.
    queues: [Vec<Vec<u8>>; 2],
    /// Work posted by each side, and completions seen: sends, then receives.
    posted: [[u64; 2]; 2],
    seen: [[u64; 2]; 2],
}

/// Runs the events that the input tells.
///
/// # Panics
/// When something does not hold.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    // Setting up takes longer than a run.
    static STARTS: OnceLock<Vec<Link>> = OnceLock::new();
    let starts = STARTS.get_or_init(|| (0..CHOICES).map(Link::new).collect());
    let mut link = starts[usize::from(input.byte()) % starts.len()].clone();
    for _ in 0..STEPS_MAX {
        let Some(event) = input.next() else { break };
        link.step(event, &mut input);
        link.poll();
        link.check();
    }
    link.check_guards();
}

impl Link {
    fn new(choice: u8) -> Self {
        let qp: fn(&mut QpConfig) = match choice % 3 {
            0 => |qp| (qp.mtu, qp.window, qp.send_depth, qp.recv_depth) = (MTU, 4, DEPTH, DEPTH),
            1 => |qp| {
                (qp.mtu, qp.window, qp.send_depth, qp.recv_depth) = (MTU, 8, DEPTH, DEPTH);
                (qp.retrans_max, qp.ack_bytes, qp.rnr_retry, qp.retry_cnt) = (2, 300, 2, 2);
            },
            _ => |qp| {
                (qp.mtu, qp.window, qp.send_depth, qp.recv_depth) = (MTU, 2, DEPTH, DEPTH);
                qp.cc = dcp_core::CongestionControl::Window { bytes: 1024 };
                qp.ack_bytes = 512;
            },
        };
        let endpoint: fn(&mut dcp_core::EndpointConfig) =
            if choice < 3 { |_| {} } else { |config| config.map_words_max = 1 };
        let start_msn = dcp_wire::Msn::from_low_bits(0xFF_FFFE);
        let pair = Pair::new(PairConfig { memory: MEMORY, qp, endpoint, start_msn, ..PairConfig::default() });
        let mut hosts = pair.hosts;
        for host in &mut hosts {
            host.memory.fill(GUARD);
            assert!(host.endpoint.deregister(host.keys));
            let (offset, len) = (REGISTERED.start as u64, REGISTERED.len() as u64);
            let attr = MrAttr {
                pd: host.pd,
                region: RegionId(0),
                offset,
                va: MR_VA + offset,
                len,
                access: Access::ALL,
            };
            host.keys = host.endpoint.register(attr).expect("a legal range");
        }
        let now = Instant::from_ns(1_000_000);
        let mut link = Self {
            hosts,
            now,
            queues: Default::default(),
            posted: Default::default(),
            seen: Default::default(),
        };
        for side in SIDES {
            link.post_receive(side, 700);
            for work in [0, 1, 2, 4] {
                link.post_send(side, work, 600);
            }
        }
        link.poll();
        link
    }

    fn post_send(&mut self, side: Side, work: u8, len: u32) {
        let rkey = self.hosts[side.peer() as usize].keys.rkey;
        let remote = Remote { va: MR_VA + 3072, rkey };
        let (op, len) = match work % 7 {
            0 => (SendOp::Write(remote), len),
            1 => (SendOp::Send, len),
            2 => (SendOp::Read(remote), len),
            3 => (SendOp::WriteImm(remote, ImmData(7)), len),
            4 => (SendOp::FetchAdd { remote, add: 3 }, 8),
            5 => (SendOp::CmpSwap { remote, compare: 3, swap: 9 }, 8),
            _ => (SendOp::SendImm(ImmData(9)), len),
        };
        let host = &mut self.hosts[side as usize];
        let sges = [host.sge(4096, len.min(1500))];
        let wr_id = self.posted[side as usize][0];
        let request = dcp_core::SendRequest::new(wr_id, op, &sges);
        self.posted[side as usize][0] += u64::from(host.endpoint.post_send(host.qps[0], &request).is_ok());
    }

    fn post_receive(&mut self, side: Side, len: u32) {
        let host = &mut self.hosts[side as usize];
        let sges = [host.sge(2048, len.min(900) / 2), host.sge(2560, len.min(900).div_ceil(2))];
        let wr_id = self.posted[side as usize][1];
        let request = RecvRequest { wr_id: wr_id | 1 << 63, sges: &sges };
        self.posted[side as usize][1] += u64::from(host.endpoint.post_recv(host.qps[0], &request).is_ok());
    }

    fn step(&mut self, event: u8, input: &mut Input<'_>) {
        let side = SIDES[usize::from(event & 1)];
        let len = self.queues[side as usize].len();
        let mut index = || usize::from(input.byte()) % len.max(1);
        match event >> 1 & 15 {
            0..=4 if len > 0 => self.receive(side, 0),
            5 if len > 0 => {
                let index = index();
                self.receive(side, index);
            }
            6 if len > 0 => {
                let index = index();
                self.queues[side as usize].remove(index);
            }
            7 if len > 0 => {
                let index = index();
                let frame = self.queues[side as usize][index].clone();
                self.queues[side as usize].push(frame);
            }
            8 if len > 0 => {
                let index = index();
                let frame = &mut self.queues[side as usize][index];
                let len = dcp_wire::trim(frame).unwrap_or(frame.len());
                frame.truncate(len);
            }
            9..=11 if len > 0 => {
                let index = index();
                let frame = &mut self.queues[side as usize][index];
                change(frame, input);
            }
            12 => self.pass_time(input),
            13 => self.post_send(side, input.byte(), input.word().into()),
            14 => self.post_receive(side, input.word().into()),
            _ => {
                let len = usize::from(input.byte());
                self.push(side, input.bytes(len).to_vec());
            }
        }
    }

    fn pass_time(&mut self, input: &mut Input<'_>) {
        let next = self.hosts.iter().filter_map(|host| host.endpoint.next_timeout()).min();
        self.now = match next {
            Some(next) if input.byte() & 3 > 0 => self.now.max(next),
            _ => self.now.after(u64::from(input.word()) << 12),
        };
        for host in &mut self.hosts {
            host.endpoint.handle_timeout(self.now);
        }
    }

    fn receive(&mut self, side: Side, index: usize) {
        let frame = self.queues[side as usize].remove(index);
        if let Some(back) = self.hosts[side as usize].receive(self.now, frame) {
            self.push(side.peer(), back);
        }
    }

    fn push(&mut self, to: Side, frame: Vec<u8>) {
        let queue = &mut self.queues[to as usize];
        if queue.len() < QUEUE_MAX {
            queue.push(frame);
        }
    }

    fn poll(&mut self) {
        for side in SIDES {
            let host = &mut self.hosts[side as usize];
            let frames = host.transmit(self.now, 16);
            host.endpoint.handle_drained();
            host.collect();
            for frame in frames {
                self.push(side.peer(), frame);
            }
        }
    }

    fn check_guards(&self) {
        for host in &self.hosts {
            let (before, after) = (&host.memory[..REGISTERED.start], &host.memory[REGISTERED.end..]);
            assert!(before.iter().chain(after).all(|&byte| byte == GUARD), "a byte outside was written");
        }
    }

    fn check(&mut self) {
        for side in SIDES {
            let host = &mut self.hosts[side as usize];
            let (seen, posted) = (&mut self.seen[side as usize], self.posted[side as usize]);
            for completion in host.completions.drain(..) {
                let queue = usize::from(completion.wr_id >> 63 == 1);
                assert_eq!(completion.wr_id & !(1 << 63), seen[queue], "{side:?}: once and in order");
                seen[queue] += 1;
            }
            assert!(seen[0] <= posted[0] && seen[1] <= posted[1]);
            let (endpoint, qp) = (&host.endpoint, host.qps[0]);
            assert!(!endpoint.cq_overflowed(host.cq));
            assert_eq!(u64::from(endpoint.outstanding(qp)), posted[0] - seen[0], "{side:?}: none is lost");
            let is_live = endpoint.qp_state(qp) == QpState::Rts;
            let under_way = endpoint.in_flight(qp) > 0 || endpoint.unacknowledged(qp) > 0;
            assert!(!is_live || !under_way || endpoint.has_timer(qp), "{side:?}: no timer");
            assert!(is_live || seen == &posted, "{side:?}: an ended queue pair keeps work");
        }
    }
}

/// Changes some bytes of a frame, behind the Ethernet header, and its length.
fn change(frame: &mut Vec<u8>, input: &mut Input<'_>) {
    let how = input.byte();
    for _ in 0..=how & 3 {
        let (at, value) = (usize::from(input.byte()), input.byte());
        // The fields that decide anything lie before byte 86.
        if let Some(byte) = frame.get_mut(14 + at % 72) {
            *byte = if how & 4 == 0 { value } else { *byte ^ 1 << (value & 7) };
        }
    }
    if how & 8 != 0 {
        let len = usize::from(input.word()) % 400;
        frame.resize(len, 0);
        resize_headers(frame);
    }
    mend(frame);
}

/// Makes IP and UDP lengths agree with the frame's.
fn resize_headers(frame: &mut [u8]) {
    let (ip_len, udp_len) = (frame.len().saturating_sub(14) as u16, frame.len().saturating_sub(34) as u16);
    for (at, value) in [(16, ip_len), (38, udp_len)] {
        if let Some(field) = frame.get_mut(at..at + 2) {
            field.copy_from_slice(&value.to_be_bytes());
        }
    }
}
