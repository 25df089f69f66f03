//! perftest for DCP.
