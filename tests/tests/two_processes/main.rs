//! `dcp-bench` as a server and a client: over memif, and over veth in a network namespace.
#![forbid(unsafe_code)]

mod all_sizes;
mod both_ways;
mod burden;
mod endings;
mod latency;
mod loads;
mod operations;
mod pair;
mod refusals;
mod strangers;
