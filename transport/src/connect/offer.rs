//! What a side of a connection offers: its address, its limits, its memory.

use std::net::Ipv4Addr;

use dcp_wire::{MacAddr, Msn, Qpn, RegionKey, Ssn};
use serde_json::Value;

/// Everything the other side must know. The address as others reach it, so not the gateway's Ethernet address.
#[derive(Clone, PartialEq, Debug)]
pub struct Offer {
    /// Queue pair.
    pub qpn: Qpn,
    /// Ethernet address.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// UDP service port.
    pub service_port: u16,
    /// Largest payload of a packet, in bytes: 256 … 8192.
    pub mtu: u32,
    /// Messages under way at once: a power of two, 1 … 2^15.
    pub window: u32,
    /// READs and atomics unanswered at once: 0 … window / 2.
    pub max_rd_atomic: u32,
    /// First message number that this side sends.
    pub start_msn: Msn,
    /// First send sequence number that this side sends.
    pub start_ssn: Ssn,
    /// Whether this side wants an ICRC on every frame; it is used when either does.
    pub icrc: bool,
    /// Bytes after which this side acknowledges; 0: whole messages only. The other side's window must hold two of it.
    pub ack_bytes: u32,
    /// Memory that the other side may reach. At most 64 regions.
    pub mrs: Vec<MrOffer>,
    /// Congestion control of this side's sender, for reports.
    pub cc: String,
    /// The application's own options; any JSON.
    pub app: Value,
}

/// A region that the other side may reach.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MrOffer {
    /// Address of its first byte.
    pub va: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its key.
    pub rkey: RegionKey,
}

/// Regions in an offer.
pub(super) const MRS_MAX: usize = 64;
