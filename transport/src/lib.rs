//! DCP: an RDMA-like transport in user space, on DPDK.
