//! See `dcp_fuzz::handle_packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dcp_fuzz::handle_packet::run(data));
