//! Plays a trace.

mod text;

use dcp_core::{QpConfig, RecvRequest, SendOp, SendRequest};
use dcp_pair::{Pair, PairConfig, Side};
use dcp_wire::{Headers, ImmData, Kind, Path, RnrTimer};

use text::{Fields, render};

/// Takes the inputs of a trace's lines and gives all lines back as they should be.
pub(crate) fn play(lines: &[String]) -> Vec<String> {
    let mut config = PairConfig { memory: 1 << 16, ..PairConfig::default() };
    let mut log = Vec::new();
    for line in lines.iter().filter(|line| line.starts_with("set ")) {
        set(&mut config.template, &Fields::of(line));
        log.push(line.clone());
    }
    let mut pair = Pair::new(config);
    for host in &mut pair.hosts {
        host.memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    }
    let mut player = Player { pair, log, told: [0; 2] };
    for line in lines.iter().filter(|line| !line.starts_with("set ")) {
        player.line(line);
    }
    player.log
}

fn set(qp: &mut QpConfig, fields: &Fields) {
    for (key, value) in &fields.pairs {
        let value = *value as u32;
        match key.as_str() {
            "mtu" => qp.mtu = value,
            "window" => qp.window = value,
            "timeout" => qp.timeout_exponent = value as u8,
            "retry" => qp.retry_cnt = value as u8,
            "rnr_retry" => qp.rnr_retry = value as u8,
            "rnr" => qp.rnr_timer = RnrTimer::new(value as u8).expect("below 32"),
            _ => panic!("unknown setting {key}"),
        }
    }
}

struct Player {
    pair: Pair,
    log: Vec<String>,
    /// Completions written down, by side.
    told: [usize; 2],
}

impl Player {
    fn line(&mut self, line: &str) {
        let (time, rest) = line.split_once(' ').expect("a time");
        let (side, event) = rest.split_once(' ').expect("a side");
        let side = if side == "client" { Side::Client } else { Side::Server };
        let (verb, rest) = event.split_once(' ').unwrap_or((event, ""));
        if verb == ">" || verb == "done" {
            return;
        }
        self.advance(text::parse_time(time));
        self.log.push(line.to_owned());
        match verb {
            "post" => self.post(side, rest),
            "recv" => self.receive(side, rest),
            "<" => self.inject(side, rest),
            "wait" => {}
            _ => panic!("unknown event in {line}"),
        }
        self.outputs();
    }

    /// Lets time pass until `to`; timers run out on the way.
    fn advance(&mut self, to: u64) {
        loop {
            let due = self.pair.hosts.iter().filter_map(|host| host.endpoint.next_timeout()).min();
            let due = due.filter(|due| due.ns() <= to && *due > self.pair.now);
            self.pair.now = due.unwrap_or(dcp_core::Instant::from_ns(to));
            for host in &mut self.pair.hosts {
                host.endpoint.handle_timeout(self.pair.now);
            }
            self.outputs();
            if due.is_none() {
                return;
            }
        }
    }

    fn note(&mut self, side: Side, event: &str) {
        let side = format!("{side:?}").to_lowercase();
        self.log.push(format!("{} {side} {event}", text::time(self.pair.now.ns())));
    }

    fn outputs(&mut self) {
        for side in [Side::Client, Side::Server] {
            let now = self.pair.now;
            for frame in self.pair.host_mut(side).transmit(now, 64) {
                self.note_frame(side, &frame);
            }
            self.pair.host_mut(side).collect();
            let all = self.pair.statuses(side);
            for (wr_id, status) in &all[self.told[side as usize]..] {
                self.note(side, &format!("done {wr_id} {}", status.name()));
            }
            self.told[side as usize] = all.len();
        }
    }

    fn note_frame(&mut self, side: Side, frame: &[u8]) {
        let packet = self.pair.host(side).view(frame);
        self.note(side, &format!("> {}", render(&packet)));
    }

    fn post(&mut self, side: Side, text: &str) {
        let fields = Fields::of(text);
        let to = self.pair.remote(side, fields.or("at", 0));
        let imm = ImmData(fields.or("imm", 0) as u32);
        let op = match fields.words[1].as_str() {
            "SEND" => SendOp::Send,
            "SEND_IMM" => SendOp::SendImm(imm),
            "WRITE" => SendOp::Write(to),
            "WRITE_IMM" => SendOp::WriteImm(to, imm),
            "READ" => SendOp::Read(to),
            "FETCH_ADD" => SendOp::FetchAdd { remote: to, add: fields.or("add", 0) },
            other => panic!("unknown verb {other}"),
        };
        let fence = fields.has("fence");
        let host = self.pair.host_mut(side);
        let sges = [host.sge(0, fields.or("len", 0) as u32)];
        let wr_id = fields.words[0].parse().expect("a number");
        let request = SendRequest { fence, ..SendRequest::new(wr_id, op, &sges) };
        host.endpoint.post_send(host.qps[0], &request).expect("there is room");
    }

    fn receive(&mut self, side: Side, text: &str) {
        let fields = Fields::of(text);
        let host = self.pair.host_mut(side);
        let sges = [host.sge(4096, fields.or("len", 0) as u32)];
        let wr_id = fields.words[0].parse().expect("a number");
        host.endpoint.post_recv(host.qps[0], &RecvRequest { wr_id, sges: &sges }).expect("there is room");
    }

    /// Hands `side` a frame that its peer might have sent.
    fn inject(&mut self, side: Side, text: &str) {
        let fields = Fields::of(text);
        let (host, peer) = (self.pair.host(side), self.pair.host(side.peer()));
        let kind: Kind = text::parse(&fields, host.keys.rkey);
        let (own, from) = (host.endpoint.config(), peer.endpoint.config());
        let path = Path {
            src_mac: from.mac,
            dst_mac: own.mac,
            vlan: None,
            src_ip: from.ip,
            dst_ip: own.ip,
            src_port: 50_000,
            dst_port: own.service_port,
            class: 0,
            ecn: dcp_wire::Ecn::Ect0,
            ttl: dcp_wire::TTL,
        };
        let pkey = host.endpoint.peer(host.qps[0]).expect("connected").pkey;
        let headers = Headers { path, dest_qpn: host.endpoint.qpn(host.qps[0]), pkey, kind };
        let payload = fields.or("len", 0) as usize;
        let mut frame = vec![0; headers.len() + payload];
        dcp_wire::emit(&headers, payload, &mut frame);
        let now = self.pair.now;
        if let Some(returned) = self.pair.host_mut(side).receive(now, frame) {
            self.note_frame(side, &returned);
        }
    }
}
