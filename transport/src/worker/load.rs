//! What a worker's receive queue says about its host: do frames have to wait, and how many come at once?

use dpdk_ffi::MbufBatch;

/// Totals over all frames received. They wrap: use wrapping differences of two readings.
///
/// Between two readings, `wait_ns` / `frames` is the mean time that a frame waited at most, and `burst_frames` /
/// (`frames` × [`BURST_MAX`](Self::BURST_MAX)) is how full the receive burst was in which a frame came. A worker that gets
/// the processor and memory it needs sees its queue empty again and again: short waits, and bursts that are not full.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiveLoad {
    /// Frames.
    pub frames: u64,
    /// Sum over all frames of the time since the queue was last seen empty, in nanoseconds (R-14's bound).
    pub wait_ns: u64,
    /// Sum over all frames of the frames in the same burst.
    pub burst_frames: u64,
}

impl ReceiveLoad {
    /// Frames of a full burst.
    pub const BURST_MAX: u64 = MbufBatch::CAPACITY as u64;

    /// A burst came `wait_ns` after the queue was last seen empty.
    #[inline]
    pub(crate) fn handle_burst(&mut self, frames: usize, wait_ns: u64) {
        let frames = frames as u64;
        self.frames = self.frames.wrapping_add(frames);
        self.wait_ns = self.wait_ns.wrapping_add(frames.wrapping_mul(wait_ns));
        self.burst_frames = self.burst_frames.wrapping_add(frames * frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_per_frame_and_wrap() {
        let mut load = ReceiveLoad::default();
        load.handle_burst(0, 1_000_000);
        assert_eq!(load, ReceiveLoad::default(), "an empty queue says nothing");
        load.handle_burst(1, 500);
        load.handle_burst(64, 2000);
        assert_eq!(load, ReceiveLoad { frames: 65, wait_ns: 128_500, burst_frames: 1 + 64 * 64 });
        load.wait_ns = u64::MAX;
        let before = load;
        load.handle_burst(2, 50);
        assert_eq!(load.wait_ns.wrapping_sub(before.wait_ns), 100);
    }
}
