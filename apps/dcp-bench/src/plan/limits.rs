//! Ranges of the values of a plan.

/// Largest message in bytes: 1 GiB.
pub const SIZE_MAX: u64 = 1 << 30;
/// Most queue pairs of one client in this process.
pub const QPS_MAX: u32 = 16384;
/// Most queue pairs between two processes, whose numbers the two tell each other in one line.
pub const LINK_QPS_MAX: u32 = 4096;
/// Completions that a completion queue holds.
pub const CQ_DEPTH_MAX: u64 = 1 << 22;
/// Most bytes of a message that is copied when it is posted.
pub const INLINE_MAX: usize = 1024;
/// Deepest send queue.
pub const TX_DEPTH_MAX: u32 = 16384;
/// Deepest receive queue.
pub const RX_DEPTH_MAX: u32 = 32768;
/// Hosts at one switch: 32 clients and a server.
pub const HOSTS_MAX: u32 = 33;
/// MTUs that a queue pair may have, in bytes.
pub const MTUS: [u32; 6] = [256, 512, 1024, 2048, 4096, 8192];
/// Data after which a receiver acknowledges at the latest, in bytes.
pub const ACK_BYTES: u64 = 32 << 10;
/// Largest window and queue threshold, in bytes: 1 GiB, well below half of the 32-bit count of bytes in flight.
pub const QUEUE_BYTES_MAX: u64 = 1 << 30;
