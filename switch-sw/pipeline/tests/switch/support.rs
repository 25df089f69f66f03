//! Hosts, frames and a harness.

use dcp_pipeline::*;
use dcp_wire::*;

pub(crate) const BROADCAST: MacAddr = MacAddr([0xFF; 6]);

/// Address of the host behind port `number`.
pub(crate) fn host(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([2, 0, 0, 0, high, low])
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A data packet with that many bytes of payload.
    Data(usize),
    Ack,
    Cnp,
    HeaderOnly,
    /// UDP to a port that is not ours, with all tag bits set.
    Other(usize),
}

pub(crate) fn frame_to(dst_mac: MacAddr, src_mac: MacAddr, what: What) -> ByteFrame {
    let name = PacketName { msn: Msn::ZERO, psn: Psn::new(1).unwrap(), generation: Generation::ZERO };
    let reth = Reth { va: 0, rkey: RegionKey(1), dma_len: 1 << 20 };
    let op = DataOp::Write { reth, part: Part::Middle };
    let data = Kind::Data(Data { name, ack_req: false, solicited: false, op });
    let opcode = DataOpcode::WriteMiddle;
    let (kind, payload_len) = match what {
        What::Data(len) | What::Other(len) => (data, len),
        What::Ack => {
            (Kind::Ack(Ack { stream: Stream::Requests, emsn: Msn::ZERO, received: 0, nak: None }), 0)
        }
        What::Cnp => (Kind::Cnp, 0),
        What::HeaderOnly => {
            let ho = HeaderOnly { name, opcode, returned: true, ack_req: false, solicited: false };
            (Kind::HeaderOnly(ho), 0)
        }
    };
    let path = Path {
        src_mac,
        dst_mac,
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, src_mac.0[4], src_mac.0[5]),
        dst_ip: Ipv4Addr::new(10, 0, dst_mac.0[4], dst_mac.0[5]),
        src_port: 0xC000,
        dst_port: if matches!(what, What::Other(_)) { 4791 } else { SERVICE_PORT },
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let headers = Headers { path, dest_qpn: Qpn::from_low_bits(7), pkey: PKey(1), kind };
    let mut bytes = vec![0xA5; headers.len() + payload_len];
    emit(&headers, payload_len, &mut bytes);
    ByteFrame(bytes.into())
}

/// A frame from the host of one port to the host of another.
pub(crate) fn frame(from: u16, to: u16, what: What) -> ByteFrame {
    frame_to(host(to), host(from), what)
}

/// The defaults for `ports` ports, each with its host known.
pub(crate) fn config(ports: u16) -> PipelineConfig {
    PipelineConfig {
        static_macs: (0..ports).map(|port| (host(port), PortId(port))).collect(),
        learn_macs: false,
        ..PipelineConfig::new(ports)
    }
}

pub(crate) type Switch = Pipeline<ByteFrame>;

pub(crate) fn switch(config: PipelineConfig) -> Switch {
    Pipeline::new(config).unwrap()
}

pub(crate) fn arrive(switch: &mut Switch, from: u16, to: u16, what: What) {
    switch.handle_frame(0, PortId(from), frame(from, to, what));
}

/// Everything that waits at a port.
pub(crate) fn sent(switch: &mut Switch, port: u16) -> Vec<ByteFrame> {
    let mut frames = Vec::new();
    switch.poll_transmit(0, PortId(port), &mut frames);
    frames
}

/// A sink for so many frames.
pub(crate) struct Room<F> {
    pub(crate) frames: Vec<F>,
    pub(crate) left: usize,
}

impl<F> Room<F> {
    pub(crate) fn of(frames: usize) -> Self {
        Self { frames: Vec::new(), left: frames }
    }
}

impl<F> FrameSink<F> for Room<F> {
    fn room(&self) -> usize {
        self.left
    }

    fn push(&mut self, frame: F) {
        self.left = self.left.checked_sub(1).unwrap();
        self.frames.push(frame);
    }
}

pub(crate) fn sent_up_to(switch: &mut Switch, port: u16, room: usize) -> Vec<ByteFrame> {
    let mut sink = Room::of(room);
    let moved = switch.poll_transmit(0, PortId(port), &mut sink);
    assert_eq!(moved, sink.frames.len());
    sink.frames
}

/// Tag of a frame, as its bytes say.
pub(crate) fn tag(frame: &ByteFrame) -> Tag {
    classify(&frame.0, &[SERVICE_PORT]).unwrap().tag
}

/// S-4, for every port and for all together.
pub(crate) fn assert_balanced<F: Frame>(switch: &Pipeline<F>) {
    for port in (0..switch.ports()).map(PortId) {
        let counters = switch.counters(port);
        assert!(counters.ingress.balances(), "port {port:?}: {counters:?}");
        assert!(counters.egress.balances(switch.queued(port).frames()), "port {port:?}: {counters:?}");
    }
    let totals = switch.totals();
    assert!(totals.ingress.balances() && totals.egress.balances(switch.queued_frames()), "{totals:?}");
    assert_eq!(totals.ingress.routed + totals.egress.duplicated, totals.egress.offered);
}
