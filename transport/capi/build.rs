//! The shared library's name for the loader: it changes when programs must be built anew.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdcp.so.0");
}
