//! What a worker's receive queue says about its host: for how long nobody came to serve it, and how much waited then.

use dpdk_ffi::MbufBatch;

/// Totals over all bursts that had frames. They wrap: use wrapping differences of two readings.
///
/// The *age* of a burst is the time since the queue was last seen empty: no frame of it waited longer (R-14's bound).
/// Between two readings, `age_squares` / `ages` is the mean age over *time*: the age that a moment picked at random would
/// meet. A worker that is kept from its processor for 4 ms in every 8 has 2 ms there, however many young bursts follow.
/// And `burst_frames` / (`frames` × [`BURST_MAX`](Self::BURST_MAX)) is how full the burst was in which a frame came.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiveLoad {
    /// Frames.
    pub frames: u64,
    /// Sum over all frames of the frames in the same burst.
    pub burst_frames: u64,
    /// Sum of ages, in units of [`AGE_UNIT_NS`](Self::AGE_UNIT_NS).
    pub ages: u64,
    /// Sum of their squares.
    pub age_squares: u64,
}

impl ReceiveLoad {
    /// Frames of a full burst.
    pub const BURST_MAX: u64 = MbufBatch::CAPACITY as u64;
    /// Unit of ages: 1024 ns, so that squares do not wrap between readings.
    pub const AGE_UNIT_NS: u64 = 1 << Self::AGE_SHIFT;
    const AGE_SHIFT: u32 = 10;

    /// A burst came `age_ns` after the queue was last seen empty.
    #[inline]
    pub(crate) fn handle_burst(&mut self, frames: usize, age_ns: u64) {
        if frames == 0 {
            return;
        }
        let (frames, age) = (frames as u64, age_ns >> Self::AGE_SHIFT);
        self.frames = self.frames.wrapping_add(frames);
        self.burst_frames = self.burst_frames.wrapping_add(frames * frames);
        self.ages = self.ages.wrapping_add(age);
        self.age_squares = self.age_squares.wrapping_add(age.wrapping_mul(age));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_weighed_by_time_and_bursts_by_frames() {
        let mut load = ReceiveLoad::default();
        load.handle_burst(0, 1_000_000_000);
        assert_eq!(load, ReceiveLoad::default(), "an empty queue says nothing");
        // One stall of 4 ms, and 4 ms of bursts 10 units apart.
        load.handle_burst(64, 4000 * ReceiveLoad::AGE_UNIT_NS);
        for _ in 0..400 {
            load.handle_burst(2, 10 * ReceiveLoad::AGE_UNIT_NS);
        }
        assert_eq!((load.frames, load.burst_frames), (864, 64 * 64 + 400 * 4));
        assert_eq!((load.ages, load.age_squares / load.ages), (8000, 2005));
    }

    #[test]
    fn sums_wrap() {
        let mut load = ReceiveLoad { ages: u64::MAX, ..ReceiveLoad::default() };
        load.handle_burst(1, u64::MAX);
        assert_eq!(load.ages.wrapping_sub(u64::MAX), u64::MAX >> 10);
    }
}
