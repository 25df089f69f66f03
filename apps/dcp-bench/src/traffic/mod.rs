//! What a run moves, the same within one process and between two: a [`Sender`] posts and collects, a [`Receiver`]
//! keeps receives posted, and [`Content`] knows what must lie in the buffers of either.

mod content;
mod layout;
mod memory;
mod receiver;
mod sender;
mod tally;

pub(crate) use content::{Content, Count};
pub(crate) use layout::Layout;
pub(crate) use memory::{Memory, REGION_VA, add_memory, check_memory, qp_config, server_qp_config};
pub(crate) use receiver::Receiver;
pub(crate) use sender::{Sender, SenderParts};
pub(crate) use tally::{Next, Tally};
