//! A bounded first-in first-out queue of frames.

use std::collections::VecDeque;

/// A frame in a queue, with what was read of it on entry.
#[derive(Debug)]
pub(crate) struct Entry<F> {
    pub(crate) frame: F,
    pub(crate) len: u32,
    /// Trimmed by this switch.
    pub(crate) trimmed: bool,
    /// Takes the control queue.
    pub(crate) control: bool,
}

/// Never grows: its memory is taken at the start.
#[derive(Debug)]
pub(crate) struct FrameQueue<F> {
    entries: VecDeque<Entry<F>>,
    frames_max: usize,
    bytes: u64,
    bytes_peak: u64,
}

impl<F> FrameQueue<F> {
    pub(crate) fn new(frames_max: u32) -> Self {
        let frames_max = frames_max as usize;
        Self { entries: VecDeque::with_capacity(frames_max), frames_max, bytes: 0, bytes_peak: 0 }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn bytes_peak(&self) -> u64 {
        self.bytes_peak
    }

    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.frames_max
    }

    /// Appends; the caller has asked [`Self::is_full`].
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry<F>) {
        debug_assert!(!self.is_full());
        self.bytes += u64::from(entry.len);
        self.bytes_peak = self.bytes_peak.max(self.bytes);
        self.entries.push_back(entry);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry<F>> {
        let entry = self.entries.pop_front()?;
        self.bytes -= u64::from(entry.len);
        Some(entry)
    }

    /// Takes entries from the front while there are some, `frames_max` at most; how many, and their bytes.
    #[inline(always)]
    pub(crate) fn pop_each(&mut self, frames_max: usize, mut take: impl FnMut(Entry<F>)) -> (usize, u64) {
        let frames = frames_max.min(self.entries.len());
        let mut bytes = 0;
        for entry in self.entries.drain(..frames) {
            bytes += u64::from(entry.len);
            take(entry);
        }
        self.bytes -= bytes;
        (frames, bytes)
    }

    /// Drops every frame; how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let frames = self.entries.len();
        self.entries.clear();
        self.bytes = 0;
        frames
    }
}
