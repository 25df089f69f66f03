//! `dcp.h` is written from the sources. `DCP_BLESS=1 cargo test -p dcp-capi --test header` writes it anew.
#![forbid(unsafe_code)]

use std::path::Path;

use cbindgen::{Builder, Config};

#[test]
fn committed_header_is_what_the_sources_say() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::from_file(crate_dir.join("cbindgen.toml")).expect("cbindgen.toml is right");
    let mut builder = Builder::new().with_config(config);
    for module in MODULES {
        builder = builder.with_src(crate_dir.join("src").join(module).with_extension("rs"));
    }
    let mut written = Vec::new();
    builder.generate().expect("the sources can be read").write(&mut written);
    let header = crate_dir.join("include/dcp.h");
    if std::env::var_os("DCP_BLESS").is_some() {
        std::fs::write(&header, &written).expect("the header can be written");
    }
    let committed = std::fs::read(&header).unwrap_or_default();
    assert!(
        committed == written,
        "include/dcp.h is not current: DCP_BLESS=1 cargo test -p dcp-capi --test header"
    );
}

/// In the order of the header.
const MODULES: [&str; 10] =
    ["version", "failure", "words", "context", "pair", "memory", "queue", "queue_pair", "post", "connection"];
