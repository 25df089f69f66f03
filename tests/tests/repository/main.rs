//! The rules of the repository, kept by a test: R0, R1, direction of dependencies, sizes, layout.
#![forbid(unsafe_code)]

mod dependencies;
mod requirements;
mod sources;
