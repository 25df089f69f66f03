//! End-to-end tests of DCP.
