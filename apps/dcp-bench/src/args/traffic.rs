//! Options of what is moved, and how.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;

use crate::plan::Threads;
use crate::units::{self, Cores};

/// What to move.
#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
pub struct TrafficArgs {
    /// Latency instead of bandwidth: one message at a time; write and send take half of a round trip, like perftest
    #[arg(long)]
    pub lat: bool,
    /// Message size in bytes, up to 1G (K, M, G = 1024, 1024^2, 1024^3) [default: 64K; with --lat: 2; atomics: 8]
    #[arg(short, long, value_name = "BYTES", value_parser = units::parse_size)]
    pub size: Option<u64>,
    /// Messages per queue pair [default: 5000; with --lat: 1000]
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_iterations)]
    pub iters: Option<NonZeroU64>,
    /// Run for so many seconds instead of a number of messages
    #[arg(short = 'D', long, value_name = "S", value_parser = units::parse_seconds)]
    pub duration: Option<Duration>,
    /// Queue pairs per client
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub qp: u32,
    /// Both sides send: the result is the sum of both directions
    #[arg(short, long)]
    pub bidirectional: bool,
    /// Messages that a queue pair may have outstanding [default: 128, or what all queue pairs have room for]
    #[arg(short, long, value_name = "N")]
    pub tx_depth: Option<u32>,
    /// Receives that the server keeps posted on a queue pair, where messages take them [default: 512, or what all
    /// queue pairs have room for]
    #[arg(short, long, value_name = "N")]
    pub rx_depth: Option<u32>,
    /// Payload of a packet in bytes: 256, 512, 1024, 2048, 4096 or 8192 [default: 4096, or what the devices carry]
    #[arg(short, long, value_name = "BYTES")]
    pub mtu: Option<u32>,
    /// Ask for a completion once in so many messages [default: 100, less with more than 200 queue pairs]
    #[arg(short = 'Q', long, value_name = "N")]
    pub cq_mod: Option<u32>,
    /// Timeout of 4.096 us * 2^N; 0 = never [default: 14, more with hundreds of queue pairs, which wait for their turns]
    #[arg(short = 'u', long, value_name = "N")]
    pub qp_timeout: Option<u8>,
    /// Timeouts without progress that a queue pair survives, up to 7
    #[arg(long, alias = "retry_count", value_name = "N", default_value_t = 7)]
    pub retry_cnt: u8,
    /// Waits for a receive that the server has not posted, up to 6; 7 = for ever
    #[arg(long, alias = "rnr_retry", value_name = "N", default_value_t = 7)]
    pub rnr_retry: u8,
    /// Protect every frame with an ICRC
    #[arg(long)]
    pub icrc: bool,
    /// Bytes that a queue pair may have in flight
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = units::parse_size)]
    pub window: u64,
    /// Drive client, switch and server on one thread, or on one pinned thread each
    #[arg(long, value_enum, default_value_t = Threads::Inline)]
    pub threads: Threads,
    /// Cores to run on, as 0,2 or 1-3: one, or up to three with --threads split
    #[arg(long, value_name = "LIST", value_parser = units::parse_cores)]
    pub cores: Option<Cores>,
    /// Check every message as it completes, not only what is there at the end
    #[arg(long)]
    pub verify: bool,
}

fn parse_iterations(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "the number of messages is a whole number from 1 up".to_owned())
}
