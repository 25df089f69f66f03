//! Frames of the DCP protocol: parse, emit, trim, bounce.
//!
//! A frame is parsed once, at the edge, into a [`Packet`]: a value that can only hold what the protocol
//! allows. Everything behind the edge works on that value and never on bytes.
//!
//! Endpoints use [`parse`] and [`emit`], and [`bounce`] on header-only packets; switches use [`classify`],
//! [`flow_hash`], [`trim`] and [`mark_ce`]. All of them work on byte slices, allocate nothing and never panic on what a frame holds.
#![forbid(unsafe_code)]

mod checksum;
mod classifier;
mod classify;
mod datagram;
mod emit;
mod error;
mod extension;
mod flow_hash;
mod follow;
pub mod header;
mod icrc;
pub mod ids;
mod layout;
mod opcode;
mod parse;
mod parse_control;
mod parse_data;
mod parse_usual;
mod rewrite;
pub mod seq;
mod shape;
mod template;
mod tos;

pub use checksum::{OnesSum, ip_checksum, udp_checksum_ok, update_checksum};
pub use classifier::Classifier;
pub use classify::{Classified, classify};
pub use emit::emit;
pub use error::ParseError;
pub use flow_hash::flow_hash;
pub use follow::Follower;
pub use header::*;
pub use icrc::{icrc, icrc_ok};
pub use ids::*;
pub use layout::{
    BTH_LEN, ETHERNET_LEN, HEADER_LEN_MAX, HO_IP_LEN, HO_LEN, HO_UDP_LEN, ICRC_LEN, IP_LEN,
    MESSAGE_BYTES_MAX, PARSE_LEN, SERVICE_PORT, TTL, UDP_LEN, VLAN_LEN,
};
pub use parse::{ParseOptions, parse, parse_frame, peek_dest_qpn, peek_service_port};
pub use rewrite::{BounceRewrite, NotDcp, bounce, mark_ce, trim};
pub use seq::*;
pub use template::{Middles, Template, WritePacket};
