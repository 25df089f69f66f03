//! Where the program's words go: events and the live line to stderr, so that COMMAND keeps standard output.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;

/// A console.
#[derive(Debug)]
pub(crate) struct Console {
    json: Json,
    quiet: bool,
    /// A live line stands at the end of the terminal.
    has_live_line: bool,
}

#[derive(Debug)]
enum Json {
    Nowhere,
    Stdout,
    File(PathBuf, File),
}

impl Console {
    /// A console whose JSON goes to `json`, `-` for stdout.
    pub(crate) fn open(json: Option<&Path>, quiet: bool) -> Result<Self, Failure> {
        let json = match json {
            None => Json::Nowhere,
            Some(path) if path == Path::new("-") => Json::Stdout,
            Some(path) => {
                let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
                Json::File(path.to_owned(), file)
            }
        };
        Ok(Self { json, quiet, has_live_line: false })
    }

    pub(crate) fn json_is_on_stdout(&self) -> bool {
        matches!(self.json, Json::Stdout)
    }

    /// A line that must be read.
    pub(crate) fn say(&mut self, text: &str) {
        let clear = if std::mem::take(&mut self.has_live_line) { "\r\x1b[K" } else { "" };
        // Where stderr is closed, nobody wants to know.
        let _ = writeln!(io::stderr().lock(), "{clear}dcp-rhcc: {text}");
    }

    /// A line for who wants to know.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// The line that is always current, on a terminal only.
    pub(crate) fn live(&mut self, text: &str) {
        let mut stderr = io::stderr().lock();
        if !self.quiet && stderr.is_terminal() {
            self.has_live_line = true;
            let _ = write!(stderr, "\r\x1b[Kdcp-rhcc: {text}").and_then(|()| stderr.flush());
        }
    }

    /// An object.
    pub(crate) fn object(&mut self, value: &Value) -> Result<(), Failure> {
        let line = format!("{value}\n");
        match &mut self.json {
            Json::Nowhere => Ok(()),
            Json::Stdout => match io::stdout().lock().write_all(line.as_bytes()) {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    Err(Failure::environment(format!("cannot write the JSON: {error}")))
                }
                _ => Ok(()),
            },
            Json::File(path, file) => {
                file.write_all(line.as_bytes()).map_err(|error| cannot_write(path, &error))
            }
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {error}", path.display()))
}
