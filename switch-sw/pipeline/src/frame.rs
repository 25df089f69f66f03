//! What the pipeline asks of a frame, and of the place where frames go.

use dcp_wire::{Classified, Classifier, HO_LEN, VLAN_LEN};

/// Shortest frame on the wire, without FCS.
pub const FRAME_LEN_MIN: u32 = 60;
/// FCS, preamble, start delimiter and inter-frame gap.
pub const WIRE_OVERHEAD: u32 = 4 + 20;

/// Bytes of link time that a frame of `frame_len` bytes takes: padding, FCS and gap included.
#[inline]
pub const fn wire_len(frame_len: u32) -> u32 {
    let padded = if frame_len < FRAME_LEN_MIN { FRAME_LEN_MIN } else { frame_len };
    padded + WIRE_OVERHEAD
}

/// A frame in the pipeline's hands: an mbuf handle, bytes, or headers and a length.
///
/// The pipeline owns it, moves it, and drops it when it is lost: `Drop` gives the buffer back.
#[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
pub trait Frame: Sized {
    /// Shows the frame's first bytes to the classifier of the port that it came by, once. `None` for a runt.
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified>;

    /// [`dcp_wire::flow_hash`] over the first bytes: asked where a flow keeps to one of several ways.
    fn flow_hash(&self) -> u32;

    /// Bytes from the Ethernet header on, without FCS.
    fn len(&self) -> u32;

    /// S-2: cuts the frame to a header-only packet ([`dcp_wire::trim`]).
    ///
    /// A shared buffer must not be edited: the frame replaces itself by a private copy of the bytes that stay.
    ///
    /// # Errors
    /// The frame is unchanged; the pipeline drops and counts it.
    fn trim(&mut self) -> Result<(), EditRefused>;

    /// S-6: marks the frame "congestion experienced" ([`dcp_wire::mark_ce`]), under the same rule about sharing.
    /// False if the frame cannot be marked.
    ///
    /// # Errors
    /// The frame is unchanged, and goes on unmarked.
    fn mark_ce(&mut self) -> Result<bool, EditRefused>;

    /// Cuts the frame to its first `keep` bytes and gives it the DSCP `dscp`, as switches do that trim but do not know DCP
    /// ([`crate::trim_to`]), under the same rule about sharing. Called only with
    /// [`PipelineConfig::trim_to`](crate::PipelineConfig::trim_to); refused unless implemented.
    ///
    /// # Errors
    /// The frame is unchanged; the pipeline drops and counts it.
    fn trim_to(&mut self, keep: u32, dscp: u8) -> Result<(), EditRefused> {
        let _ = (keep, dscp);
        Err(EditRefused::Unsupported)
    }

    /// S-7: changes one byte behind the headers that a switch reads, chosen by `seed` ([`crate::corruption`]), under the
    /// same rule about sharing. Called only for that fault; refused unless implemented.
    ///
    /// # Errors
    /// The frame is unchanged, and goes on.
    fn corrupt(&mut self, seed: u64) -> Result<(), EditRefused> {
        let _ = seed;
        Err(EditRefused::Unsupported)
    }

    /// A second frame of the same bytes, for flooding and duplication; may share the buffer. `None` if there is no
    /// buffer for it.
    fn try_clone(&self) -> Option<Self>;
}

/// Why a frame cannot be edited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditRefused {
    /// Its buffer is shared, and there is no other for a private copy.
    NoBuffer,
    /// It is shorter than its headers say, or has no byte to be changed.
    NotDcp,
    /// Frames of this type cannot be edited so.
    Unsupported,
}

/// Where and how a seed corrupts a frame of which `len` bytes are in reach: an index, and what to flip there. `None` if
/// there is nothing behind the bytes that a switch reads, so that a corrupt frame still takes its way.
pub fn corruption(len: usize, seed: u64) -> Option<(usize, u8)> {
    let reach = u32::try_from(len.checked_sub(HO_LEN + VLAN_LEN)?).ok()?;
    let [a, b, c, d, e, ..] = seed.to_le_bytes();
    let offset = (u64::from(u32::from_le_bytes([a, b, c, d])) * u64::from(reach)) >> 32;
    // Never 0, or nothing would change.
    (reach > 0).then_some((HO_LEN + VLAN_LEN + usize::try_from(offset).ok()?, e | 1))
}

/// Where [`crate::Pipeline::poll_transmit`] puts frames.
pub trait FrameSink<F> {
    /// Frames that can be pushed now.
    fn room(&self) -> usize;

    /// Takes a frame. Called at most [`room`](Self::room) times, so it cannot fail.
    fn push(&mut self, frame: F);
}

impl<F> FrameSink<F> for Vec<F> {
    fn room(&self) -> usize {
        usize::MAX
    }

    fn push(&mut self, frame: F) {
        Vec::push(self, frame);
    }
}
