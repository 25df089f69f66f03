//! Safe wrappers over the part of DPDK that DCP uses.
