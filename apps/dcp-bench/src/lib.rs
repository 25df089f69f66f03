//! perftest for DCP.
//!
//! From the outside in: [`app`] parses the command line ([`args`]) into a [`plan`], runs it on a [`device`], and
//! renders the [`outcome`] as a table ([`report`]) and as JSON ([`json`]).

#![forbid(unsafe_code)]

pub mod app;
pub mod args;
pub mod burden;
pub mod congestion;
pub mod console;
pub mod csv;
pub mod device;
pub mod failure;
pub mod fairness;
pub mod hint;
pub mod interrupt;
pub mod json;
pub mod load;
pub mod loopback;
pub mod measure;
pub mod net;
pub mod network;
mod null;
pub mod op;
pub mod outcome;
mod pair;
pub mod pattern;
pub mod plan;
pub mod progress;
pub mod report;
mod rhcc;
pub mod sink;
pub mod sizes;
pub mod stats;
pub mod tools;
mod traffic;
pub mod units;
