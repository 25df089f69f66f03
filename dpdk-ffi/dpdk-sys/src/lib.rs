//! Raw bindings to the libdpdk of the distribution.
