//! The receiver's window: a tracking slot for each of the messages `emsn … emsn + W − 1`.

use dcp_wire::{Generation, Msn, PacketName};

use crate::DropReason;
use crate::maps::MapPool;
use crate::slot::{Slot, SlotState};

/// Where a packet belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// It may be placed and counted.
    Take,
    /// It may be, in a newer generation than its slot's.
    Restart(Generation),
    /// It may not.
    Drop(DropReason),
}

#[derive(Clone, Hash, Debug)]
pub(super) struct RecvWindow {
    emsn: Msn,
    slots: Box<[Slot]>,
}

impl RecvWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { emsn: Msn::ZERO, slots: vec![Slot::default(); size as usize].into() }
    }

    pub(super) fn start(&mut self, emsn: Msn) {
        self.emsn = emsn;
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "W is at most 2^15")]
    fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Bytes that tracking takes, whatever arrives.
    #[cfg(test)]
    pub(super) fn slot_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    #[inline]
    pub(super) const fn emsn(&self) -> Msn {
        self.emsn
    }

    #[inline]
    pub(super) fn slot(&self, msn: Msn) -> &Slot {
        &self.slots[msn.get() as usize & (self.slots.len() - 1)]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, msn: Msn) -> &mut Slot {
        &mut self.slots[msn.get() as usize & (self.slots.len() - 1)]
    }

    /// in their order.
    #[inline]
    pub(super) fn admit(&self, name: PacketName) -> Admission {
        if name.msn.index_in(self.emsn, self.size()).is_none() {
            let old = name.msn.is_before(self.emsn);
            return Admission::Drop(if old { DropReason::OldMessage } else { DropReason::BeyondWindow });
        }
        let slot = self.slot(name.msn);
        match slot.state() {
            SlotState::Complete | SlotState::Failed | SlotState::Request => {
                Admission::Drop(DropReason::Settled)
            }
            SlotState::Mapped => Admission::Take,
            _ if name.generation.is_newer_than(slot.generation()) => Admission::Restart(name.generation),
            _ if name.generation != slot.generation() => Admission::Drop(DropReason::OldGeneration),
            SlotState::Poisoned => Admission::Drop(DropReason::Poisoned),
            SlotState::Counting => Admission::Take,
        }
    }

    /// The slot of a packet that let in, if it counts WRITEs of that packet's generation, or nothing yet.
    #[inline]
    pub(super) fn counting_slot(&self, name: PacketName) -> Option<&Slot> {
        let inside = name.msn.index_in(self.emsn, self.size()).is_some();
        let slot = self.slot(name.msn);
        (inside && slot.counts_writes_of(name.generation)).then_some(slot)
    }

    /// whether an HO is worth a bounce.
    pub(super) fn admit_header(&self, name: PacketName, maps: &MapPool) -> Result<(), DropReason> {
        match self.admit(name) {
            Admission::Drop(reason @ (DropReason::OldMessage | DropReason::BeyondWindow)) => Err(reason),
            Admission::Drop(reason @ (DropReason::Settled | DropReason::OldGeneration)) => Err(reason),
            Admission::Take if self.in_map(name, maps) => Err(DropReason::Duplicate),
            _ => Ok(()),
        }
    }

    fn in_map(&self, name: PacketName, maps: &MapPool) -> bool {
        let slot = self.slot(name.msn);
        slot.state() == SlotState::Mapped && maps.contains(slot.map(), name.psn.get())
    }

    /// steps over a complete message at `emsn`. False: there is none.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        let complete = self.slot(self.emsn).state() == SlotState::Complete;
        if complete {
            self.step();
        }
        complete
    }

    /// Steps over the message at `emsn`, whatever it is.
    #[inline]
    pub(super) fn step(&mut self) {
        let emsn = self.emsn;
        *self.slot_mut(emsn) = Slot::default();
        self.emsn = emsn.next();
    }

    /// Gives every map back: the queue pair failed.
    pub(super) fn clear(&mut self, maps: &mut MapPool) {
        for slot in &mut self.slots {
            if slot.state() == SlotState::Mapped {
                maps.give_back(slot.map());
            }
            *slot = Slot::default();
        }
    }
}
