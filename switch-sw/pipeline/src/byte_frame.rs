//! A frame of contiguous bytes, for tests and simulators.

use bytes::{Bytes, BytesMut};
use dcp_wire::{Classified, Classifier, HO_LEN, VLAN_LEN};

use crate::frame::{EditRefused, Frame, corruption};

/// A frame in a reference-counted buffer. Clones share it, and no edit shows in a clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByteFrame(pub Bytes);

impl ByteFrame {
    /// The frame's bytes, as a buffer of its own: the same one if nobody shares it.
    fn edit(
        &mut self,
        keep: usize,
        edit: impl FnOnce(&mut BytesMut) -> Result<(), EditRefused>,
    ) -> Result<(), EditRefused> {
        let original = core::mem::take(&mut self.0);
        let mut private = match original.try_into_mut() {
            Ok(unique) => unique,
            Err(shared) => {
                // S-2: a shared buffer is never edited in place.
                let copy = BytesMut::from(&shared[..keep.min(shared.len())]);
                self.0 = shared;
                copy
            }
        };
        let result = edit(&mut private);
        if result.is_ok() || self.0.is_empty() {
            self.0 = private.freeze();
        }
        result
    }
}

impl Frame for ByteFrame {
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        classifier.classify(&self.0)
    }

    fn flow_hash(&self) -> u32 {
        dcp_wire::flow_hash(&self.0)
    }

    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    fn trim(&mut self) -> Result<(), EditRefused> {
        self.edit(HO_LEN + VLAN_LEN, |bytes| {
            let len = dcp_wire::trim(bytes).map_err(|_| EditRefused::NotDcp)?;
            bytes.truncate(len);
            Ok(())
        })
    }

    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        let mut marked = false;
        self.edit(usize::MAX, |bytes| {
            marked = dcp_wire::mark_ce(bytes).map_err(|_| EditRefused::NotDcp)?;
            Ok(())
        })?;
        Ok(marked)
    }

    fn trim_to(&mut self, keep: u32, dscp: u8) -> Result<(), EditRefused> {
        let len = self.0.len();
        self.edit(keep as usize, |bytes| {
            let len = crate::trim_to(bytes, len, keep as usize, dscp).map_err(|_| EditRefused::NotDcp)?;
            bytes.truncate(len);
            Ok(())
        })
    }

    fn corrupt(&mut self, seed: u64) -> Result<(), EditRefused> {
        let (index, flip) = corruption(self.0.len(), seed).ok_or(EditRefused::NotDcp)?;
        self.edit(usize::MAX, |bytes| {
            bytes[index] ^= flip;
            Ok(())
        })
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}
