//! See `dcp_fuzz::parse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dcp_fuzz::parse::run(data));
