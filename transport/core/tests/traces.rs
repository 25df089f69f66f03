//! Plays the text traces in `traces/`: what goes into each of two endpoints, and all that comes out of them.
//!
//! A line is `time side event`. Inputs are `post ID VERB key=value …`, `recv ID len=N`, `< PACKET` and `wait`; outputs
//! are `> PACKET` and `done ID STATUS`. `set key=value` lines before them change the queue pairs, `#` begins a
//! comment. The player takes the inputs and writes down everything; that must be the file again. With
//! `DCP_TRACE=name` it prints what it wrote down instead, for a new trace.
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small")]

mod trace;

use trace::play;

/// Lines that count, in one spelling.
fn lines(text: &str) -> Vec<String> {
    let stripped = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = stripped.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_trace_plays_as_written() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 8);
    let chosen = std::env::var("DCP_TRACE").ok();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let written = lines(&std::fs::read_to_string(&path).unwrap());
        let played = play(&written);
        if chosen.as_deref() == Some(&*name) {
            println!("{}", played.join("\n"));
        } else if chosen.is_none() {
            let same = played.iter().zip(&written).take_while(|(a, b)| a == b).count();
            let (played, written) = (played.get(same), written.get(same));
            assert_eq!(played, written, "{name}, line {same} of those that count: played, written");
        }
    }
}
