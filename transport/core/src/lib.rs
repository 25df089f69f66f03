//! The sans-IO DCP endpoint: queue pairs, tracking, retransmission, timers.
//!
//! No clock, no thread, no socket and no payload byte in here: time comes in as an argument, packets come in
//! parsed, and bytes are named by [`Segment`]s that a driver moves. The same [`Endpoint`] runs under DPDK, in a
//! simulator and in tests.
//!
//! Four families of methods: commands (`create_*`, `post_*`, `modify_*`), inputs (`handle_*`), outputs (`poll_*`,
//! `next_*`) and getters (bare nouns). Requirement ids (`T-8`, `R-3` …) are those of `docs/PROTOCOL.md`.
#![forbid(unsafe_code)]

mod cc;
mod completion;
mod config;
mod counters;
mod endpoint;
mod ids;
mod io;
mod maps;
mod memory;
mod mix;
mod qp;
mod slot;
mod time;
mod wheel;

pub use cc::{CongestionControl, DcqcnConfig, Fraction, Rate, RhccConfig, RhccThreshold, SwiftConfig};
pub use cc::{HostControl, HostControlConfig, HostControlError, Level, Levels, Occupancy, TrafficClass};
pub use completion::{Completion, Operation, Status};
pub use config::{EndpointConfig, Peer, QpConfig, Terms, WindowError};
pub use counters::{Counters, DropReason, QpCounters};
pub use endpoint::{CreateError, Endpoint};
pub use ids::{CqId, PdId, QpId, RegionId, SrqId};
pub use io::{
    AtomicOp, Prefetch, RunSink, RxPacket, RxSink, RxVerdict, Segment, TxFrame, TxSink, WriteFrame,
};
pub use memory::{Access, MrAttr, MrKeys, RegisterError};
pub use mix::Mixer;
pub use qp::{
    Followed, ModifyError, PostError, QpState, RecvRequest, Remote, Run, SendOp, SendRequest, Sge, Stretch,
};
pub use time::Instant;
