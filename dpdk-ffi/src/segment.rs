//! One mbuf of a chain: its fields, by the offsets that the C compiler found.

use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk_sys::{rte_mbuf, rte_mbuf_ext_shared_info};

/// A view of one mbuf that is alive for `'a`, because someone's exclusive handle on its frame is.
///
/// Setters take `self` by value like those of a `Cell`: neither the handle nor this is `Sync`, so only one thread writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    mbuf: NonNull<rte_mbuf>,
    _alive: PhantomData<(&'a rte_mbuf, *mut ())>,
}

macro_rules! fields {
    ($($getter:ident $setter:ident: $kind:ty = $offset:ident;)*) => {$(
        #[inline]
        #[allow(dead_code, reason = "one macro makes both, not every field needs both")]
        pub(crate) fn $getter(self) -> $kind {
            let field = self.field::<$kind>(dpdk_sys::$offset as usize);
            // SAFETY: inside an mbuf that is alive (`Segment::new`), aligned as the C compiler laid it out.
            unsafe { field.read() }
        }

        #[inline]
        #[allow(dead_code, reason = "one macro makes both, not every field needs both")]
        pub(crate) fn $setter(self, value: $kind) {
            let field = self.field::<$kind>(dpdk_sys::$offset as usize);
            // SAFETY: as in the getter; only the owner of the frame gets here.
            unsafe { field.write(value) };
        }
    )*};
}

impl<'a> Segment<'a> {
    /// # Safety
    /// `mbuf` must stay alive for `'a`, and belong to the caller's frame.
    #[inline]
    pub(crate) unsafe fn new(mbuf: NonNull<rte_mbuf>) -> Self {
        Self { mbuf, _alive: PhantomData }
    }

    fields! {
        buf_addr set_buf_addr: *mut u8 = DCP_MBUF_BUF_ADDR;
        data_off set_data_off: u16 = DCP_MBUF_DATA_OFF;
        refcnt set_refcnt: u16 = DCP_MBUF_REFCNT;
        nb_segs set_nb_segs: u16 = DCP_MBUF_NB_SEGS;
        flags set_flags: u64 = DCP_MBUF_OL_FLAGS;
        pkt_len set_pkt_len: u32 = DCP_MBUF_PKT_LEN;
        data_len set_data_len: u16 = DCP_MBUF_DATA_LEN;
        buf_len set_buf_len: u16 = DCP_MBUF_BUF_LEN;
        next_ptr set_next_ptr: *mut rte_mbuf = DCP_MBUF_NEXT;
        shared_info set_shared_info: *mut rte_mbuf_ext_shared_info = DCP_MBUF_SHINFO;
        packet_type set_packet_type: u32 = DCP_MBUF_PACKET_TYPE;
        tx_offload set_tx_offload: u64 = DCP_MBUF_TX_OFFLOAD;
    }

    /// Makes an mbuf as its last user left it one with a single reference, of no port, that is the head of `segments`
    /// segments, if it is a head. The four fields lie side by side and are one store.
    #[inline]
    pub(crate) fn rearm(self, data_off: u16, segments: u16) {
        const REFERENCES: u16 = 1;
        const NO_PORT: u16 = u16::MAX;
        let field = self.field::<[u16; 4]>(dpdk_sys::DCP_MBUF_DATA_OFF as usize);
        // SAFETY: inside the mbuf, and the shim asserts the order; only the owner of the frame gets here.
        unsafe { field.write([data_off, REFERENCES, segments, NO_PORT]) };
    }

    /// Where the IO address is kept, if this DPDK keeps one.
    #[inline]
    pub(crate) fn set_iova(self, iova: u64) {
        if dpdk_sys::DCP_MBUF_HAS_IOVA != 0 {
            let field = self.field::<u64>(dpdk_sys::DCP_MBUF_BUF_IOVA as usize);
            // SAFETY: as in the setters above; the field exists, as was just asked.
            unsafe { field.write(iova) };
        }
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> *mut rte_mbuf {
        self.mbuf.as_ptr()
    }

    /// The segment behind this one.
    #[inline]
    pub(crate) fn next(self) -> Option<Self> {
        // SAFETY: the rest of a chain lives as long as its head.
        NonNull::new(self.next_ptr()).map(|mbuf| unsafe { Self::new(mbuf) })
    }

    /// The first byte of the segment's data.
    #[inline]
    pub(crate) fn data(self) -> *mut u8 {
        self.buf_addr().wrapping_add(usize::from(self.data_off()))
    }

    /// The data's length.
    #[inline]
    pub(crate) fn len(self) -> usize {
        usize::from(self.data_len())
    }

    /// Whether only this handle can reach the segment's bytes: its own buffer, and one reference.
    #[inline]
    pub(crate) fn is_exclusive(self) -> bool {
        self.flags() & (dpdk_sys::DCP_MBUF_F_EXTERNAL | dpdk_sys::DCP_MBUF_F_INDIRECT) == 0
            && self.refcnt() == 1
    }

    /// The pool's private area behind the mbuf, where the shared info of an external buffer goes.
    #[inline]
    pub(crate) fn private_info(self) -> *mut rte_mbuf_ext_shared_info {
        self.field(dpdk_sys::DCP_MBUF_SIZE as usize)
    }

    #[inline]
    fn field<T>(self, offset: usize) -> *mut T {
        self.mbuf.as_ptr().cast::<u8>().wrapping_add(offset).cast()
    }
}
