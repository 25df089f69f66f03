//! Networks in virtual time: the core, the pipeline and the topologies as they are, links from the hosts made up.
#![forbid(unsafe_code)]

mod incast;
mod network;
mod unequal_paths;
