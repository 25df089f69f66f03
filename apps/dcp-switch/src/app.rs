//! The program from its command line to its exit code.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::failure::Failure;
use crate::plan::Plan;
use crate::report::Report;
use crate::settings::{Cli, Settings};
use crate::{file, json, run, signals, table};

/// Runs the program with its words, its own name first; answers the exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed terminal is nothing to report.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let result = settings(cli).and_then(|settings| {
        let mut console = Console::open(settings.json.as_deref())?;
        carry_out(settings, &mut console).inspect_err(|failure| console.failure(failure))
    });
    match result {
        Ok(()) => 0,
        Err(failure) => {
            say(&format!("error: {failure}"));
            failure.exit_code()
        }
    }
}

fn settings(cli: Cli) -> Result<Settings, Failure> {
    let from_file = cli.config.as_deref().map_or(Ok(Settings::default()), file::read)?;
    Ok(cli.settings.over(from_file))
}

fn carry_out(settings: Settings, console: &mut Console) -> Result<(), Failure> {
    let plan = Plan::new(settings)?;
    let stop = signals::watch()
        .map_err(|error| Failure::environment(format!("cannot watch for Ctrl-C: {error}")))?;
    run::run(&plan, &stop, console)
}

/// Where the program's words go: events to stderr, the table to stdout unless the JSON is there.
#[derive(Debug)]
pub struct Console {
    json: Json,
}

#[derive(Debug)]
enum Json {
    Nowhere,
    Stdout,
    File(PathBuf, File),
}

impl Console {
    /// A console whose JSON goes to `json`, `-` for stdout.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(json: Option<&Path>) -> Result<Self, Failure> {
        let json = match json {
            None => Json::Nowhere,
            Some(path) if path == Path::new("-") => Json::Stdout,
            Some(path) => {
                Json::File(path.to_owned(), File::create(path).map_err(|error| cannot_write(path, &error))?)
            }
        };
        Ok(Self { json })
    }

    /// A line about what happens.
    pub fn say(&mut self, text: &str) {
        say(text);
    }

    /// A remark.
    pub fn note(&mut self, text: &str) {
        say(&format!("note: {text}"));
    }

    /// Counters in the middle.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn report(&mut self, report: &Report, earlier: Option<&Report>) -> Result<(), Failure> {
        self.table(&table::table(report, earlier))?;
        self.object(&json::report(report, false))
    }

    /// Counters at the end.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn last_report(&mut self, report: &Report) -> Result<(), Failure> {
        self.table(&format!("{}{}", table::table(report, None), table::footer(report)))?;
        self.object(&json::report(report, true))
    }

    fn failure(&mut self, failure: &Failure) {
        // Where it cannot be written, the sentence on stderr must do.
        let _ = self.object(&json::error(failure));
    }

    fn table(&mut self, text: &str) -> Result<(), Failure> {
        match self.json {
            Json::Stdout => print(&mut io::stderr().lock(), text),
            _ => print(&mut io::stdout().lock(), text),
        }
        .map_err(|error| Failure::environment(format!("cannot write the counters: {error}")))
    }

    fn object(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        let line = format!("{value}\n");
        match &mut self.json {
            Json::Nowhere => Ok(()),
            Json::Stdout => print(&mut io::stdout().lock(), &line)
                .map_err(|error| Failure::environment(format!("cannot write the counters: {error}"))),
            Json::File(path, file) => print(file, &line).map_err(|error| cannot_write(path, &error)),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {error}", path.display()))
}

/// A line on stderr; where that is closed, nobody wants to know.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints and flushes; a reader that has left is no failure.
fn print(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
