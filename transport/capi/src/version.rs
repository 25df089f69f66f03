//! Versions.

use std::ffi::c_char;

/// Major version of this header. While it is 0, a new minor version may break programs.
pub const DCP_VERSION_MAJOR: u32 = 0;
/// Minor version of this header.
pub const DCP_VERSION_MINOR: u32 = 1;
/// Patch of this header.
pub const DCP_VERSION_PATCH: u32 = 0;

/// Version of the library that runs: DCP_VERSION_NUMBER(major, minor, patch).
#[unsafe(no_mangle)]
pub extern "C" fn dcp_version() -> u32 {
    DCP_VERSION_MAJOR << 16 | DCP_VERSION_MINOR << 8 | DCP_VERSION_PATCH
}

/// The same as text: "0.1.0". Static.
#[unsafe(no_mangle)]
pub extern "C" fn dcp_version_str() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_package_have_the_same_version() {
        let version = format!("{DCP_VERSION_MAJOR}.{DCP_VERSION_MINOR}.{DCP_VERSION_PATCH}");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }
}
