//! The trimming switch on DPDK ports.
