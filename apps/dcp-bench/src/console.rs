//! Where a program's words go: tables, notes, the JSON.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Destination of the JSON, opened before the run so that a path that cannot be written costs no run.
#[derive(Debug)]
pub enum JsonSink {
    /// No JSON was asked for.
    Nowhere,
    /// Standard output.
    Stdout,
    /// A file; what it held before is gone.
    File(PathBuf, File),
}

impl JsonSink {
    /// Opens what `--json` names.
    ///
    /// # Errors
    /// An environment failure: the file cannot be written.
    pub fn open(target: Option<&Path>) -> Result<Self, Failure> {
        match target {
            None => Ok(Self::Nowhere),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) => match File::create(path) {
                Ok(file) => Ok(Self::File(path.to_owned(), file)),
                Err(error) => Err(cannot_write(path, &error)),
            },
        }
    }

    /// Writes `json`.
    ///
    /// # Errors
    /// An environment failure: the disk is full, for one.
    pub fn write(&mut self, json: &str) -> Result<(), Failure> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Stdout => print(&mut io::stdout().lock(), json),
            Self::File(path, file) => {
                file.write_all(json.as_bytes()).map_err(|error| cannot_write(path, &error))
            }
        }
    }
}

/// What people read.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// The table goes to stderr, since stdout holds the JSON.
    pub table_on_stderr: bool,
    /// No notes.
    pub quiet: bool,
}

impl Console {
    /// Prints a part of the table.
    ///
    /// # Errors
    /// An environment failure: the output cannot be written. A reader that has left is none.
    pub fn table(self, text: &str) -> Result<(), Failure> {
        if self.table_on_stderr {
            print(&mut io::stderr().lock(), text)
        } else {
            print(&mut io::stdout().lock(), text)
        }
    }

    /// Prints a remark on stderr.
    pub fn note(self, text: &str) {
        if !self.quiet {
            say(&format!("note: {text}"));
        }
    }

    /// Prints why the run failed on stderr.
    pub fn failure(self, failure: &Failure) {
        say(&format!("error: {failure}"));
    }
}

/// Prints a line on stderr; where that is closed, nobody wants to know.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn print(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("cannot write the results: {error}")))
        }
        _ => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {error}", path.display()))
        .with_hint("give --json a file in a directory that you may write to, or - for stdout")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails every write in one way.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn reader_that_left_is_no_failure() {
        assert_eq!(print(&mut Broken(ErrorKind::BrokenPipe), "x"), Ok(()));
    }

    #[test]
    fn full_disk_is_an_environment_failure() {
        let failure = print(&mut Broken(ErrorKind::StorageFull), "x").unwrap_err();
        assert_eq!(failure.exit_code(), 3);
    }

    #[test]
    fn file_that_cannot_be_written_is_named() {
        let failure = JsonSink::open(Some(Path::new("/nonexistent/out.json"))).unwrap_err();
        assert_eq!(failure.exit_code(), 3);
        assert!(failure.message.starts_with("cannot write /nonexistent/out.json: "));
    }
}
