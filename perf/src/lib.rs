//! Benchmarks of DCP.
