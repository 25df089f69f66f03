//! Instruction counts of the hot path's pieces, held against the committed ones.
//!
//! `make gate`; `make gate GATE_ARGS=--accept` makes the counts the new baselines.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use dcp_perf::gate::{Baselines, Verdict, count_all, judge, run_counted, table};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        [] => check(),
        ["--accept"] => accept(),
        ["--run", name] => run_counted(name).map_err(|error| (2, error)),
        _ => Err((2, "usage: gate [--accept]".to_owned())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, sentence)) => {
            eprintln!("error: {sentence}");
            ExitCode::from(code)
        }
    }
}

fn check() -> Result<(), (u8, String)> {
    let baselines = Baselines::read().map_err(|error| (3, error))?;
    let counts = count_all().map_err(|error| (3, error))?;
    print!("{}", table(Some(&baselines), &counts));
    match judge(&baselines, &counts) {
        Verdict::Passed => Ok(()),
        Verdict::NotComparable(text) => {
            println!("{text}");
            Ok(())
        }
        Verdict::Failed(text) => Err((1, text)),
    }
}

fn accept() -> Result<(), (u8, String)> {
    let counts = count_all().map_err(|error| (3, error))?;
    print!("{}", table(Baselines::read().ok().as_ref(), &counts));
    counts.write().map_err(|error| (3, error))?;
    println!("accepted in {}", Baselines::path().display());
    Ok(())
}
