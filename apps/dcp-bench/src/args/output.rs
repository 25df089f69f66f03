//! Options of where results go.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::report::Unit;

/// Where perftest puts its JSON.
const PERFTEST_JSON: &str = "perftest_out.json";

/// Where results go.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the results to FILE as JSON, also when the run fails; - = stdout, the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// perftest's way to ask for JSON: to the file of --out_json_file
    #[arg(long = "out_json")]
    pub out_json: bool,
    /// Like --json; with --out_json alone it is perftest_out.json
    #[arg(long = "out_json_file", value_name = "FILE", conflicts_with = "json")]
    pub out_json_file: Option<PathBuf>,
    /// Write the rows to FILE as comma-separated values; - = stdout, the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// No progress bar and no notes
    #[arg(long)]
    pub quiet: bool,
    /// Bandwidth in Gb/s instead of MiB/s
    #[arg(long = "report_gbits")]
    pub report_gbits: bool,
}

impl OutputArgs {
    /// Where the JSON goes.
    pub fn json(&self) -> Option<PathBuf> {
        let default = self.out_json.then(|| PathBuf::from(PERFTEST_JSON));
        self.json.clone().or_else(|| self.out_json_file.clone()).or(default)
    }

    /// The option that says so.
    pub const fn json_option(&self) -> &'static str {
        if self.json.is_some() { "--json" } else { "--out_json_file" }
    }

    /// Whether stdout holds what other programs read.
    pub fn takes_stdout(&self) -> bool {
        let stdout = Some(PathBuf::from("-"));
        self.csv == stdout || self.json() == stdout
    }

    /// Unit of the table.
    pub const fn unit(&self) -> Unit {
        if self.report_gbits { Unit::Gigabits } else { Unit::Mebibytes }
    }
}

/// Where `--json` points to on a command line that could not be parsed as a whole.
pub fn json_target(words: &[OsString]) -> Option<PathBuf> {
    let mut default = None;
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--out_json" {
            default = Some(PathBuf::from(PERFTEST_JSON));
        }
        for option in ["--json", "--out_json_file"] {
            if word == option {
                return words.next().filter(|path| !path.is_empty()).map(PathBuf::from);
            }
            let value = word.to_str().and_then(|word| word.strip_prefix(option)?.strip_prefix('='));
            if let Some(path) = value {
                return Some(path).filter(|path| !path.is_empty()).map(PathBuf::from);
            }
        }
    }
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_target_is_found_in_a_broken_command_line() {
        let target = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            json_target(&words)
        };
        assert_eq!(target("dcp-bench write --json out --nonsense"), Some("out".into()));
        assert_eq!(target("dcp-bench write --nonsense --json=-"), Some("-".into()));
        assert_eq!(target("dcp-bench write --json"), None);
        assert_eq!(target("dcp-bench write --json="), None);
        assert_eq!(target("dcp-bench write"), None);
        assert_eq!(target("dcp-bench write --out_json --nonsense"), Some("perftest_out.json".into()));
        assert_eq!(target("dcp-bench write --out_json --out_json_file=a"), Some("a".into()));
    }
}
