//! What the fuzzers found worth keeping, replayed on a stable compiler: `transport/fuzz` holds the targets and corpora.
#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "the files are modules of a library there")]
#![expect(clippy::cast_possible_truncation, reason = "frames are short")]

#[path = "../../fuzz/src/handle_packet.rs"]
mod handle_packet;
#[path = "../../fuzz/src/input.rs"]
mod input;
#[path = "../../fuzz/src/parse.rs"]
mod parse;

use std::path::Path;

const FILES_MAX: usize = 200;

/// Runs a target on each file of its corpus.
fn replay(name: &str, run: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&directory).expect("the corpus is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    assert!((20..=FILES_MAX).contains(&paths.len()), "{} files in {}", paths.len(), directory.display());
    for path in paths {
        let data = std::fs::read(&path).expect("it can be read");
        // The name is printed when the run panics.
        println!("{}", path.display());
        run(&data);
    }
}

// P-1, A2.
#[test]
fn no_frame_of_the_corpus_panics_and_what_parses_is_emitted_alike() {
    replay("parse", parse::run);
}

// P-1, P-2, C6, C11.
#[test]
fn no_sequence_of_the_corpus_writes_astray_or_loses_a_completion() {
    replay("handle_packet", handle_packet::run);
}
