//! A burst of frames.

use std::fmt;
use std::ptr::{self, NonNull};
use std::slice;

use dpdk_sys::rte_mbuf;

use crate::mbuf::Mbuf;

/// Up to [`CAPACITY`](Self::CAPACITY) frames in order. What is still in it when it is dropped is freed in bulk.
pub struct MbufBatch {
    /// The first `len` are heads of chains that this batch owns; `Mbuf` is transparent over such a pointer.
    mbufs: [*mut rte_mbuf; Self::CAPACITY],
    len: usize,
}

// SAFETY: owns its frames like so many `Mbuf`s, which are `Send`.
unsafe impl Send for MbufBatch {}

impl MbufBatch {
    /// Frames in a full batch: twice the usual burst, so that one burst can wait while another comes.
    pub const CAPACITY: usize = 64;

    /// An empty batch.
    pub const fn new() -> Self {
        Self { mbufs: [ptr::null_mut(); Self::CAPACITY], len: 0 }
    }

    /// Frames in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Frames that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        Self::CAPACITY - self.len
    }

    /// Adds a frame at the end.
    ///
    /// # Errors
    /// Gives it back when the batch is full.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        match self.mbufs.get_mut(self.len) {
            Some(slot) => {
                *slot = mbuf.into_raw();
                self.len += 1;
                Ok(())
            }
            None => Err(mbuf),
        }
    }

    /// Adds a frame that is to be freed, and frees all of them when the batch is full: for a batch kept as a bin.
    #[inline]
    pub fn discard(&mut self, mbuf: Mbuf) {
        if self.len == Self::CAPACITY {
            self.free_all();
        }
        self.mbufs[self.len] = mbuf.into_raw();
        self.len += 1;
    }

    /// Takes the last frame.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the slot behind the new length held a frame of ours, and is now out of the batch.
        NonNull::new(self.mbufs[self.len]).map(|head| unsafe { Mbuf::from_raw(head) })
    }

    /// Takes frame `index`; the last one takes its place.
    ///
    /// # Panics
    /// When there is no such frame.
    #[inline]
    pub fn swap_remove(&mut self, index: usize) -> Mbuf {
        assert!(index < self.len, "frame {index} of a batch of {}", self.len);
        self.mbufs.swap(index, self.len - 1);
        self.pop().unwrap_or_else(|| unreachable!("not empty, as just asserted"))
    }

    /// All frames, in order.
    #[inline]
    pub fn as_slice(&self) -> &[Mbuf] {
        // SAFETY: `Mbuf` is transparent over a non-null pointer, and the first `len` slots hold such frames of ours.
        unsafe { slice::from_raw_parts(self.mbufs.as_ptr().cast(), self.len) }
    }

    /// All frames, in order, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf] {
        // SAFETY: as in `as_slice`; `&mut Mbuf` allows no more than to exchange whole frames.
        unsafe { slice::from_raw_parts_mut(self.mbufs.as_mut_ptr().cast(), self.len) }
    }

    /// Goes over all frames, in order.
    #[inline]
    pub fn iter(&self) -> slice::Iter<'_, Mbuf> {
        self.as_slice().iter()
    }

    /// Takes all frames out, in order. Those not taken when the iterator is dropped are freed.
    #[inline]
    pub fn drain(&mut self) -> Drain<'_> {
        // Zero until the iterator is done: leaking it then leaks frames, and frees none twice.
        let len = std::mem::take(&mut self.len);
        Drain { batch: self, next: 0, len }
    }

    /// Goes over all frames, in order; those that are kept or put back stay.
    #[inline]
    pub fn sift(&mut self) -> Sift<'_> {
        // Zero until the sieve is dropped: leaking it then leaks frames, and frees none twice.
        let len = std::mem::take(&mut self.len);
        Sift { batch: self, kept: 0, next: 0, len }
    }

    /// Moves frames from the front of `from` to the end of this batch, as many as fit; returns how many.
    pub fn append(&mut self, from: &mut Self) -> usize {
        self.append_sparing(from, 0)
    }

    /// The same, but leaves room for `spare` frames.
    pub fn append_sparing(&mut self, from: &mut Self, spare: usize) -> usize {
        let count = from.len.min(self.room().saturating_sub(spare));
        self.mbufs[self.len..self.len + count].copy_from_slice(&from.mbufs[..count]);
        self.len += count;
        from.forget_front(count);
        count
    }

    /// Frees all frames in bulk.
    #[inline]
    pub fn free_all(&mut self) {
        free_raw(&mut self.mbufs[..self.len]);
        self.len = 0;
    }

    /// The free slots, for a device to fill.
    #[inline]
    pub(crate) fn spare(&mut self) -> &mut [*mut rte_mbuf] {
        &mut self.mbufs[self.len..]
    }

    /// Takes over the first `count` of the [`spare`](Self::spare) slots.
    ///
    /// # Safety
    /// They must hold frames that belong to the caller.
    #[inline]
    pub(crate) unsafe fn commit(&mut self, count: usize) {
        assert!(count <= self.room(), "{count} frames into a room of {}", self.room());
        self.len += count;
    }

    /// The frames' pointers, for a device to send.
    #[inline]
    pub(crate) fn raw(&mut self) -> &mut [*mut rte_mbuf] {
        &mut self.mbufs[..self.len]
    }

    /// Forgets the first `count` frames, which belong to someone else by now, and moves up the rest.
    #[inline]
    pub(crate) fn forget_front(&mut self, count: usize) {
        self.mbufs.copy_within(count..self.len, 0);
        self.len -= count;
    }
}

/// Frees chains in bulk.
#[inline]
fn free_raw(mbufs: &mut [*mut rte_mbuf]) {
    if mbufs.is_empty() {
        return;
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most CAPACITY")]
    let count = mbufs.len() as u32;
    // SAFETY: every caller passes heads of chains that it owns, and forgets them.
    unsafe { dpdk_sys::dcpshim_free_bulk(mbufs.as_mut_ptr(), count) };
}

impl Drop for MbufBatch {
    #[inline]
    fn drop(&mut self) {
        self.free_all();
    }
}

impl Default for MbufBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MbufBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl<'a> IntoIterator for &'a MbufBatch {
    type Item = &'a Mbuf;
    type IntoIter = slice::Iter<'a, Mbuf>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Takes the frames out of a batch; see [`MbufBatch::drain`].
#[derive(Debug)]
pub struct Drain<'a> {
    batch: &'a mut MbufBatch,
    next: usize,
    len: usize,
}

impl Iterator for Drain<'_> {
    type Item = Mbuf;

    #[inline]
    fn next(&mut self) -> Option<Mbuf> {
        if self.next == self.len {
            return None;
        }
        let head = self.batch.mbufs[self.next];
        self.next += 1;
        // SAFETY: a frame of the batch, which forgot it when the iterator was made.
        NonNull::new(head).map(|head| unsafe { Mbuf::from_raw(head) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len - self.next, Some(self.len - self.next))
    }
}

impl ExactSizeIterator for Drain<'_> {}

impl Drop for Drain<'_> {
    #[inline]
    fn drop(&mut self) {
        free_raw(&mut self.batch.mbufs[self.next..self.len]);
    }
}

/// Goes over the frames of a batch; see [`MbufBatch::sift`]. Frames not looked at when it is dropped stay in the batch.
#[derive(Debug)]
pub struct Sift<'a> {
    batch: &'a mut MbufBatch,
    /// Slots before hold what stays.
    kept: usize,
    /// Slots from here on hold what was not looked at yet; never below `kept`.
    next: usize,
    len: usize,
}

impl Sift<'_> {
    /// Frames not looked at yet.
    #[inline]
    pub fn rest(&self) -> &[Mbuf] {
        let rest = &self.batch.mbufs[self.next..self.len];
        // SAFETY: as in `MbufBatch::as_slice`: these slots hold frames of ours.
        unsafe { slice::from_raw_parts(rest.as_ptr().cast(), rest.len()) }
    }

    /// Keeps the next `count` frames, or as many as there are.
    #[inline]
    pub fn keep(&mut self, count: usize) {
        let count = count.min(self.len - self.next);
        if self.kept != self.next {
            self.batch.mbufs.copy_within(self.next..self.next + count, self.kept);
        }
        self.kept += count;
        self.next += count;
    }

    /// Takes the next frame out.
    #[inline]
    pub fn take(&mut self) -> Option<Mbuf> {
        if self.next == self.len {
            return None;
        }
        let head = self.batch.mbufs[self.next];
        self.next += 1;
        // SAFETY: a frame of ours, which is in no slot that counts any more.
        NonNull::new(head).map(|head| unsafe { Mbuf::from_raw(head) })
    }

    /// Puts a frame in the place of one that was taken.
    ///
    /// # Panics
    /// When no more were taken than were put back.
    #[inline]
    pub fn put_back(&mut self, mbuf: Mbuf) {
        assert!(self.kept < self.next, "no place is free");
        self.batch.mbufs[self.kept] = mbuf.into_raw();
        self.kept += 1;
    }
}

impl Drop for Sift<'_> {
    #[inline]
    fn drop(&mut self) {
        self.keep(self.len);
        self.batch.len = self.kept;
    }
}
