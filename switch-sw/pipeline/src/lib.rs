//! The sans-IO trimming switch: classify, route, queue, trim, schedule.
//!
//! A [`Pipeline`] is the whole switch as a state machine, generic over what a [`Frame`] is: an mbuf under DPDK, bytes
//! in tests, a length in a simulator. The driver receives and transmits; the pipeline decides.
//!
//! ```
//! use dcp_pipeline::{ByteFrame, Pipeline, PipelineConfig, PortId};
//!
//! let mut switch = Pipeline::new(PipelineConfig::new(2))?;
//! let mut frame = vec![0xFF; 60]; // broadcast
//! frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
//! switch.handle_frame(0, PortId(0), ByteFrame(frame.into()));
//!
//! let mut sent = Vec::new();
//! assert_eq!(switch.poll_transmit(0, PortId(1), &mut sent), 1);
//! # Ok::<(), dcp_pipeline::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod byte_frame;
mod config;
mod config_error;
mod counters;
mod egress;
mod fault;
mod fault_point;
mod forward;
mod frame;
mod group;
mod hold;
mod ingress;
mod link;
mod mac_table;
mod note;
mod pipeline;
mod port;
mod queue;
mod random;
mod receive;
mod red;
mod route;
mod scheduler;
mod tap;
mod transmit;
mod trim_to;
mod weight;

pub use byte_frame::ByteFrame;
pub use config::{
    MAC_ENTRIES_MAX, PORTS_MAX, PipelineConfig, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, SERVICE_PORTS_MAX,
};
pub use config_error::{ConfigError, Parameter, PerPort};
pub use counters::{DropReason, Drops, EgressCounters, IngressCounters, PortCounters};
pub use dcp_wire::{Classified, Classifier};
pub use fault::{Every, FaultConfig, FaultCounters, HELD_FRAMES_MAX};
pub use frame::{EditRefused, FRAME_LEN_MIN, Frame, FrameSink, WIRE_OVERHEAD, corruption, wire_len};
pub use link::{IN_FLIGHT_FRAMES_MAX, LinkConfig, LinkRate, LinkTime};
pub use note::Note;
pub use pipeline::Pipeline;
pub use port::{Direction, PortId};
pub use random::Probability;
pub use red::RedConfig;
pub use route::{
    GROUP_MEMBERS_MAX, GROUP_WEIGHT_MAX, GROUPS_MAX, GroupConfig, GroupId, GroupMember, LoadBalance,
};
pub use tap::{NoTap, Tap, TapPoint};
pub use transmit::Queued;
pub use trim_to::{TrimQueue, TrimTo, trim_to};
pub use weight::{Incast, Weight, WeightConfig};
