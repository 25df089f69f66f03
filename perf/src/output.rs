//! How programs that measure begin and end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Why a program has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The user stopped it.
    Interrupted,
    /// What is ours does not run; a sentence.
    Broken(String),
    /// The machine does not let it; a sentence.
    Environment(String),
}

/// Becomes true with the first SIGINT or SIGTERM, so that what was made on the machine is taken away again.
///
/// # Errors
/// Signals cannot be caught.
pub fn stopped_by_signals() -> Result<&'static AtomicBool, Failure> {
    static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let stopped = STOPPED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(stopped))
            .map_err(|error| Failure::Environment(format!("signals cannot be caught: {error}")))?;
    }
    Ok(stopped)
}

/// Writes a file; `-` is stdout.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path == Path::new("-") {
        print!("{text}");
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))
}

/// What a program has measured: for people, for programs, and as a plot, or why that cannot be drawn.
#[derive(Debug)]
pub struct Told {
    /// Text.
    pub tables: String,
    /// One object.
    pub json: String,
    /// SVG, or a sentence.
    pub svg: Result<String, String>,
}

/// Prints the tables, unless stdout is the JSON's, and writes the files that are wanted.
///
/// # Errors
/// One of them cannot be written.
pub fn publish(told: Told, json: Option<&Path>, svg: Option<&Path>) -> Result<(), Failure> {
    if json != Some(Path::new("-")) {
        print!("{}", told.tables);
    }
    if let Some(path) = json {
        write(path, &told.json)?;
    }
    match svg {
        Some(path) => write(path, &told.svg.map_err(Failure::Broken)?),
        None => Ok(()),
    }
}

/// The exit code; a failure is told first.
pub fn finish(result: Result<(), Failure>) -> ExitCode {
    let (code, sentence) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Interrupted) => (130, "interrupted; nothing was written".to_owned()),
        Err(Failure::Broken(sentence)) => (1, sentence),
        Err(Failure::Environment(sentence)) => (3, sentence),
    };
    eprintln!("error: {sentence}");
    ExitCode::from(code)
}
