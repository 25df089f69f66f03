//! What a run moves, the same within one process and between two: a [`Sender`] posts and collects, a [`Receiver`]
//! keeps receives posted, a [`Duplex`] does both, a [`Rally`] is either side of a ping-pong, and [`Content`] knows what must lie in the buffers.

mod content;
mod copies;
mod duplex;
mod layout;
mod memory;
mod rally;
mod receiver;
mod schedule;
mod sender;
mod side;
mod tally;

pub(crate) use content::{Content, Count};
pub(crate) use copies::Copies;
pub(crate) use duplex::{Duplex, DuplexParts};
pub(crate) use layout::Layout;
pub(crate) use memory::{
    Cqs, Extent, Memory, REGION_VA, Role, add_memory, check_memory, clear, qp_config, queue_bytes,
};
pub(crate) use rally::{Rally, RallyParts};
pub(crate) use receiver::Receiver;
pub(crate) use sender::{Sender, SenderParts};
pub(crate) use side::{Client, Server};
pub(crate) use tally::{Done, Next, Tally};
