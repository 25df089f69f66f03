//! Raw bindings to the libdpdk of the distribution, and a shim of burst-level functions over what DPDK only has as
//! `static inline`. Nothing else lives here: `dpdk-ffi` is the safe face.

#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};

macro_rules! opaque {
    ($($name:ident)*) => {$(
        /// Only ever seen behind a pointer.
        #[repr(C)]
        pub struct $name {
            _bytes: [u8; 0],
            _pinned: PhantomData<(*mut c_void, PhantomPinned)>,
        }
    )*};
}

opaque!(rte_mbuf rte_mempool rte_ring rte_tel_data FILE);

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
