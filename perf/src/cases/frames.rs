//! Headers of typical frames.

use dcp_wire::{
    Ack, Data, DataOp, Ecn, Generation, Headers, Ipv4Addr, Kind, MacAddr, Msn, PKey, PacketName, Part, Path,
    Psn, Qpn, RegionKey, Reth, SERVICE_PORT, Stream,
};

/// Address of a host.
pub fn mac(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([2, 0, 0, 0, high, low])
}

/// From the first host to another, as one of many flows.
pub fn path(flow: u16, to: MacAddr) -> Path {
    Path {
        src_mac: mac(0),
        dst_mac: to,
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2),
        src_port: 0xC000 | flow,
        dst_port: SERVICE_PORT,
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    }
}

/// A packet from the middle of a WRITE of 1 MiB.
pub fn write(flow: u16, to: MacAddr) -> Headers {
    let name = PacketName { msn: Msn::ZERO, psn: Psn::from_low_bits(1), generation: Generation::ZERO };
    let op = DataOp::Write { reth: Reth { va: 0, rkey: RegionKey(1), dma_len: 1 << 20 }, part: Part::Middle };
    headers(flow, to, Kind::Data(Data { name, ack_req: false, solicited: false, op }))
}

/// An acknowledgement.
pub fn ack(to: MacAddr) -> Headers {
    let ack = Ack { stream: Stream::Requests, emsn: Msn::ZERO, received: 1 << 20, nak: None };
    headers(0, to, Kind::Ack(ack))
}

fn headers(flow: u16, to: MacAddr, kind: Kind) -> Headers {
    Headers { path: path(flow, to), dest_qpn: Qpn::from_low_bits(1), pkey: PKey(7), kind }
}
