//! An mbuf as a frame of the pipeline.

use dcp_pipeline::{Classified, Classifier, EditRefused, Frame, FrameSink, corruption};
use dcp_wire::{HO_LEN, PARSE_LEN, VLAN_LEN};
use dpdk_ffi::{Mbuf, MbufBatch};

/// A frame in mbufs. Eight bytes; dropping it frees the mbufs.
#[derive(Debug)]
pub struct MbufFrame(pub Mbuf);

/// Bytes at the front that classification, trimming and marking touch.
const EDITED_LEN: usize = HO_LEN + VLAN_LEN;

impl MbufFrame {
    /// For headers that others may write to, or that lie in pieces.
    fn classify_copied<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        let mut head = [0; PARSE_LEN];
        let len = self.0.header_into(&mut head);
        classifier.classify(&head[..len])
    }

    /// Applies `edit` to bytes that nobody else holds: the frame's own, or a copy of its first `keep` bytes.
    fn edit<T>(
        &mut self,
        keep: usize,
        edit: impl FnOnce(&mut [u8]) -> Result<T, dcp_wire::NotDcp>,
    ) -> Result<T, EditRefused> {
        if self.0.is_shared() || self.0.head_len() < EDITED_LEN.min(self.0.frame_len()) {
            let mut copy = self.0.private_copy(keep).ok_or(EditRefused::NoBuffer)?;
            let head = copy.head_mut().ok_or(EditRefused::NoBuffer)?;
            let done = edit(head).map_err(|_| EditRefused::NotDcp)?;
            self.0 = copy;
            return Ok(done);
        }
        let head = self.0.head_mut().ok_or(EditRefused::NoBuffer)?;
        edit(head).map_err(|_| EditRefused::NotDcp)
    }
}

impl Frame for MbufFrame {
    #[inline]
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        let head = self.0.head();
        if head.len() >= EDITED_LEN { classifier.classify(head) } else { self.classify_copied(classifier) }
    }

    fn flow_hash(&self) -> u32 {
        let mut head = [0; PARSE_LEN];
        let len = self.0.header_into(&mut head);
        dcp_wire::flow_hash(&head[..len])
    }

    #[inline]
    fn len(&self) -> u32 {
        u32::try_from(self.0.frame_len()).expect("pkt_len is a u32")
    }

    fn trim(&mut self) -> Result<(), EditRefused> {
        let len = self.edit(EDITED_LEN, dcp_wire::trim)?;
        // The bytes are exclusive now, and a payload segment behind them goes back whole.
        self.0.truncate(len).map_err(|_| EditRefused::NoBuffer)
    }

    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        self.edit(usize::MAX, dcp_wire::mark_ce)
    }

    fn trim_to(&mut self, keep: u32, dscp: u8) -> Result<(), EditRefused> {
        let keep = keep as usize;
        let frame_len = self.0.frame_len();
        let len = self.edit(keep, |head| dcp_pipeline::trim_to(head, frame_len, keep, dscp))?;
        self.0.truncate(len).map_err(|_| EditRefused::NoBuffer)
    }

    fn corrupt(&mut self, seed: u64) -> Result<(), EditRefused> {
        // Payload may be the sender's own memory, so a copy changes; of that, a byte in its first segment.
        let mut copy = self.0.private_copy(self.0.frame_len()).ok_or(EditRefused::NoBuffer)?;
        let head = copy.head_mut().ok_or(EditRefused::NoBuffer)?;
        let (index, flip) = corruption(head.len(), seed).ok_or(EditRefused::NotDcp)?;
        head[index] ^= flip;
        self.0 = copy;
        Ok(())
    }

    fn try_clone(&self) -> Option<Self> {
        self.0.private_copy(self.0.frame_len()).map(Self)
    }
}

/// A batch as the place where the pipeline puts frames.
pub(crate) struct BatchSink<'a>(pub(crate) &'a mut MbufBatch);

impl FrameSink<MbufFrame> for BatchSink<'_> {
    #[inline]
    fn room(&self) -> usize {
        self.0.room()
    }

    #[inline]
    fn push(&mut self, frame: MbufFrame) {
        self.0.push(frame.0).expect("room() counted it");
    }
}
