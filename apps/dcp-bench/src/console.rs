//! Where a program's words go: tables, notes, failures.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

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

/// Prints and flushes; a reader that has left is no failure.
pub(crate) fn print(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("cannot write the results: {error}")))
        }
        _ => Ok(()),
    }
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
}
