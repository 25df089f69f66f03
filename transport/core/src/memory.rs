//! Registered memory: what peers and work requests may touch.

use std::collections::VecDeque;

use dcp_wire::RegionKey;

use crate::{PdId, RegionId, Segment};

/// Rights to a registered range. Reading locally is always allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Access {
    /// Peers may WRITE.
    pub remote_write: bool,
    /// Peers may READ.
    pub remote_read: bool,
    /// Peers may run atomics.
    pub remote_atomic: bool,
    /// Own receives and READs may land here.
    pub local_write: bool,
}

impl Access {
    /// Everything.
    pub const ALL: Self =
        Self { remote_write: true, remote_read: true, remote_atomic: true, local_write: true };
}

/// A range to register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MrAttr {
    /// Protection domain it belongs to.
    pub pd: PdId,
    /// Block of memory it lies in.
    pub region: RegionId,
    /// Offset of its first byte in that block.
    pub offset: u64,
    /// Address by which peers and work requests name its first byte.
    pub va: u64,
    /// Length in bytes. The range may end at 2^64 − 1, not wrap.
    pub len: u64,
    /// Rights.
    pub access: Access,
}

/// Keys of a registered range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MrKeys {
    /// For work requests of the owner.
    pub lkey: RegionKey,
    /// For peers.
    pub rkey: RegionKey,
}

/// Why a range was not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisterError {
    /// Address plus length wraps around the end of the address space.
    Wraps {
        /// Address asked for.
        va: u64,
        /// Length asked for.
        len: u64,
    },
    /// Atomics need 8-byte alignment to mean the same in addresses and in memory.
    Misaligned {
        /// Address asked for.
        va: u64,
        /// Offset asked for.
        offset: u64,
    },
    /// All key slots are taken.
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl core::fmt::Display for RegisterError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Wraps { va, len } => {
                write!(f, "a region of {len} bytes at {va:#x} passes the end of the address space")
            }
            Self::Misaligned { va, offset } => write!(
                f,
                "address {va:#x} and offset {offset:#x} differ modulo 8, which a region with atomics may not"
            ),
            Self::TooMany { limit } => write!(f, "{limit} memory regions are registered, which is the limit"),
        }
    }
}

impl core::error::Error for RegisterError {}

/// What an access wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    LocalRead,
    LocalWrite,
    RemoteWrite,
    RemoteRead,
    RemoteAtomic,
}

/// Which key an access presents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) pd: PdId,
    pub(crate) key: RegionKey,
    pub(crate) need: Need,
}

/// A key is 12 bits of slot and 20 bits of generation; lkey and rkey of a range are successive generations.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Memory {
    slots: Vec<Slot>,
    /// Freed slots, oldest first, so that a key comes back as late as possible (F3).
    free: VecDeque<u16>,
}

#[derive(Clone, Copy, Hash, Debug)]
struct Slot {
    generation: u32,
    range: Option<MrAttr>,
}

const SLOT_BITS: u32 = 12;
const SLOTS_MAX: usize = 1 << SLOT_BITS;
const GENERATION_MASK: u32 = (1 << (32 - SLOT_BITS)) - 1;

impl Memory {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: VecDeque::new() }
    }

    pub(crate) fn register(&mut self, attr: MrAttr) -> Result<MrKeys, RegisterError> {
        let MrAttr { va, len, .. } = attr;
        if len > 0 && len - 1 > u64::MAX - va {
            return Err(RegisterError::Wraps { va, len });
        }
        if attr.access.remote_atomic && !(va ^ attr.offset).is_multiple_of(8) {
            return Err(RegisterError::Misaligned { va, offset: attr.offset });
        }
        let slot = self.take_slot().ok_or(RegisterError::TooMany { limit: SLOTS_MAX })?;
        let entry = &mut self.slots[usize::from(slot)];
        entry.generation = (entry.generation + 2) & GENERATION_MASK;
        entry.range = Some(attr);
        let key = |generation: u32| RegionKey(generation << SLOT_BITS | u32::from(slot));
        Ok(MrKeys { lkey: key(entry.generation), rkey: key(entry.generation | 1) })
    }

    /// New slots first, then the one that has been free for the longest time.
    fn take_slot(&mut self) -> Option<u16> {
        if self.slots.len() < SLOTS_MAX {
            self.slots.push(Slot { generation: 0, range: None });
            return u16::try_from(self.slots.len() - 1).ok();
        }
        self.free.pop_front()
    }

    /// Forgets a range; false if the key names none. Peers are refused from now on; work that was posted keeps what
    /// its keys meant when it was posted.
    pub(crate) fn deregister(&mut self, keys: MrKeys) -> bool {
        let slot = slot_of(keys.rkey);
        let Some(entry) = self.slots.get_mut(slot) else { return false };
        if entry.range.is_none() || entry.generation != generation_of(keys.lkey) {
            return false;
        }
        entry.range = None;
        self.free.extend(u16::try_from(slot));
        true
    }

    /// The memory behind `[va, va + len)`, if the claim allows the access.
    #[inline(always)]
    pub(crate) fn resolve(&self, claim: Claim, va: u64, len: u32) -> Option<Segment> {
        let entry = self.slots.get(slot_of(claim.key))?;
        let range = entry.range.as_ref()?;
        let (generation, allowed) = match claim.need {
            Need::LocalRead => (entry.generation, true),
            Need::LocalWrite => (entry.generation, range.access.local_write),
            Need::RemoteRead => (entry.generation | 1, range.access.remote_read),
            Need::RemoteAtomic => (entry.generation | 1, range.access.remote_atomic),
            Need::RemoteWrite => (entry.generation | 1, range.access.remote_write),
        };
        let inside = va.wrapping_sub(range.va);
        let fits = va >= range.va && inside <= range.len && u64::from(len) <= range.len - inside;
        (fits && allowed && generation_of(claim.key) == generation && range.pd == claim.pd).then(|| Segment {
            region: range.region,
            offset: range.offset + inside,
            len,
        })
    }
}

#[inline]
const fn slot_of(key: RegionKey) -> usize {
    key.0 as usize % SLOTS_MAX
}

#[inline]
const fn generation_of(key: RegionKey) -> u32 {
    key.0 >> SLOT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(va: u64, len: u64) -> MrAttr {
        MrAttr { pd: PdId(0), region: RegionId(3), offset: 0, va, len, access: Access::ALL }
    }

    fn remote(key: RegionKey) -> Claim {
        Claim { pd: PdId(0), key, need: Need::RemoteWrite }
    }

    #[test]
    fn f1_ranges_that_wrap_are_refused_and_the_last_byte_works() {
        let mut memory = Memory::new();
        assert!(memory.register(attr(0xFFFF_FFFF_FFFF_FFC0, 96)).is_err());
        assert!(memory.register(attr(16, u64::MAX)).is_err());
        let keys = memory.register(attr(0xFFFF_FFFF_FFFF_FFC0, 64)).unwrap();
        assert!(memory.resolve(remote(keys.rkey), u64::MAX, 1).is_some());
        assert!(memory.resolve(remote(keys.rkey), u64::MAX, 2).is_none());
        assert!(memory.resolve(remote(keys.rkey), 0, 1).is_none());
    }

    #[test]
    fn f2_offsets_beyond_two_gib_are_reached() {
        let mut memory = Memory::new();
        let keys = memory.register(attr(0x1000, 3 << 30)).unwrap();
        let found = memory.resolve(remote(keys.rkey), 0x1000 + 0x8000_0001, 64).unwrap();
        assert_eq!((found.offset, found.len), (0x8000_0001, 64));
        assert!(memory.resolve(remote(keys.rkey), 0x1000, 1 << 31).is_some());
        assert!(memory.resolve(remote(keys.rkey), 0x1000 + (3 << 30) - 63, 64).is_none());
    }

    #[test]
    fn f3_an_old_key_never_matches_a_new_region() {
        let mut memory = Memory::new();
        let first = memory.register(attr(0, 64)).unwrap();
        assert_ne!(first.lkey, first.rkey);
        assert!(memory.deregister(first));
        assert!(!memory.deregister(first));
        for _ in 0..1_000_000 {
            let keys = memory.register(attr(0, 64)).unwrap();
            assert_ne!(keys, first);
            assert!(memory.resolve(remote(first.rkey), 0, 1).is_none());
            assert!(memory.resolve(remote(keys.lkey), 0, 1).is_none(), "lkey is no rkey");
            memory.deregister(keys);
        }
    }

    #[test]
    fn rights_domain_and_bounds_are_checked() {
        let mut memory = Memory::new();
        let keys = memory.register(MrAttr { offset: 4, ..attr(100, 10) }).unwrap();
        let read_only = MrAttr { access: Access::default(), ..attr(0, 10) };
        let read_only = memory.register(read_only).unwrap();
        let expected = Segment { region: RegionId(3), offset: 6, len: 8 };
        assert_eq!(memory.resolve(remote(keys.rkey), 102, 8), Some(expected));
        assert_eq!(memory.resolve(remote(keys.rkey), 102, 9), None);
        assert_eq!(memory.resolve(remote(keys.rkey), 99, 1), None);
        assert_eq!(memory.resolve(Claim { pd: PdId(1), ..remote(keys.rkey) }, 102, 8), None);
        assert_eq!(memory.resolve(remote(read_only.rkey), 0, 1), None);
        assert_eq!(memory.resolve(remote(RegionKey(u32::MAX)), 0, 1), None);
    }
}
