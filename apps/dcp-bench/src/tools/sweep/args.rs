//! `sweep OP …`: the options of an operation, one of which is given a list.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};

use crate::args::{BandwidthArgs, Cli};
use crate::failure::Failure;
use crate::op::Op;
use crate::sink;

/// Options that take no list, by clap's name for them: ways to a peer, files, and what has commas of its own. Any other
/// that takes a value takes a list of them.
const UNLISTED: [&str; 8] = ["device", "ip", "gateway", "mac", "cores", "ecn", "interval", "host"];
/// Options that a sweep keeps for itself.
const OWN: [&str; 6] = ["json", "csv", "svg", "quiet", "report_gbits", ROUNDS];
const ROUNDS: &str = "rounds";
/// Most rounds.
const ROUNDS_MAX: i64 = 99;
/// Options that need another process, or a file for each run.
const REFUSED: [(&str, &str); 6] = [
    ("host", "HOST"),
    ("server", "--server"),
    ("port", "--port"),
    ("pcap", "--pcap"),
    ("out_json", "--out_json"),
    ("out_json_file", "--out_json_file"),
];

/// A sweep as it was asked for: every value makes a legal run.
#[derive(Clone, Debug)]
pub struct SweepArgs {
    /// The operation of every run.
    pub(super) op: Op,
    /// Name of the option that has a list, without its dashes.
    pub(super) option: String,
    /// That list.
    pub(super) values: Vec<String>,
    /// The other options, the same for every run.
    pub(super) words: Vec<OsString>,
    /// Runs of each value.
    pub(super) rounds: usize,
    pub(super) json: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
    pub(super) quiet: bool,
    pub(super) gigabits: bool,
}

impl SweepArgs {
    /// The words of one run.
    pub(super) fn words_of(&self, value: &str) -> Vec<OsString> {
        let mut words = vec![OsString::from(self.op.name())];
        words.extend(self.words.iter().cloned());
        words.push(format!("--{}={value}", self.option).into());
        words
    }

    /// Whether latency is what it is about: that of a ping-pong, or that of an open loop.
    pub(super) fn is_latency(&self) -> bool {
        let is_it = |word: &OsString| word == "--lat" || word.to_string_lossy().starts_with("--arrivals=");
        self.option == "arrivals" || self.words.iter().any(is_it)
    }

    /// How many of the results go to stdout, which has room for one.
    fn on_stdout(&self) -> usize {
        [&self.json, &self.csv, &self.svg]
            .into_iter()
            .flatten()
            .filter(|path| path.as_os_str() == "-")
            .count()
    }

    /// Whether stdout holds a result, so that the table cannot.
    pub(super) fn table_on_stderr(&self) -> bool {
        self.on_stdout() > 0
    }

    /// Plans every run, so that none is refused after others have run.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.on_stdout() > 1 {
            return Err(Failure::usage("only one of --json, --csv and --svg can go to stdout"));
        }
        sink::refuse_one_file_twice(&[
            ("--json", self.json.as_deref()),
            ("--csv", self.csv.as_deref()),
            ("--svg", self.svg.as_deref()),
        ])?;
        for value in &self.values {
            let words = std::iter::once(OsString::from("dcp-bench")).chain(self.words_of(value));
            let cli =
                Cli::try_parse_from(words).map_err(|error| Failure::usage(crate::app::sentence(&error)))?;
            if let Ok((op, args)) = cli.command.operation() {
                args.plans(op)?;
            }
        }
        Ok(())
    }

    fn read(op: Op, matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = command(op);
        // clap panics when asked for an option that the operation does not have.
        let is_known = |id: &str| matches.try_contains_id(id).is_ok();
        let given = |id: &str| is_known(id) && matches.value_source(id) == Some(ValueSource::CommandLine);
        let refused = REFUSED.iter().find(|(id, _)| given(id));
        if let Some((_, name)) = refused {
            return Err(wrong(&format!(
                "{name} means nothing in a sweep, whose runs take place in one process"
            )));
        }
        let (mut words, mut swept) = (Vec::new(), Vec::new());
        for arg in command.get_arguments().filter(|arg| given(arg.get_id().as_str())) {
            let (id, name) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
            if OWN.contains(&id) {
                continue;
            }
            let raw: Vec<OsString> = matches.get_raw(id).into_iter().flatten().map(OsString::from).collect();
            match (arg.get_action(), &raw[..]) {
                (ArgAction::SetTrue, _) => words.push(format!("--{name}").into()),
                (_, [one]) => words.push(joined(name, one)),
                (_, list) => swept.push((name.to_owned(), list.to_vec())),
            }
        }
        let [(option, values)] = &swept[..] else {
            return Err(wrong(&number_of_lists(swept.len())));
        };
        let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
        Ok(Self {
            op,
            option: option.clone(),
            values: values.iter().map(|value| value.to_string_lossy().into_owned()).collect(),
            words,
            rounds: usize::from(matches.get_one::<u8>(ROUNDS).copied().unwrap_or(1)),
            json: path("json"),
            csv: path("csv"),
            svg: path("svg"),
            quiet: matches.get_flag("quiet"),
            gigabits: matches.get_flag("report_gbits"),
        })
    }
}

fn number_of_lists(count: usize) -> String {
    let found = if count == 0 { "none does".to_owned() } else { format!("{count} do") };
    format!("one option of a sweep has a list, such as --trim 0,0.1%,1%, but here {found}")
}

fn wrong(sentence: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{sentence}\n"))
}

/// `--name=value` in one word, which no value can break.
fn joined(name: &str, value: &OsString) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

/// The options of `op`, with lists where a sweep takes them.
fn command(op: Op) -> Command {
    let about = format!("Run {} once for each value of one option", op.name());
    let mut command = BandwidthArgs::augment_args(Command::new(op.name()))
        .about(about)
        .long_about(None)
        .display_name(format!("dcp-bench sweep {}", op.name()))
        .allow_negative_numbers(true);
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().as_str().to_owned()).collect();
    for id in &ids {
        if REFUSED.iter().any(|(refused, _)| refused == id) {
            command = command.mut_arg(id, |arg| arg.hide(true));
        } else if !OWN.contains(&id.as_str()) && !UNLISTED.contains(&id.as_str()) {
            command = command.mut_arg(id, listed);
        }
    }
    command = command.arg(
        Arg::new(ROUNDS)
            .long(ROUNDS)
            .value_name("N")
            .default_value("1")
            .value_parser(clap::value_parser!(u8).range(1..=ROUNDS_MAX))
            .help("Run all values N times, in turns, and show the median run of each")
            .help_heading("Sweep"),
    );
    for (id, what) in
        [("csv", "Write the results to FILE as CSV"), ("svg", "Draw the results to FILE as SVG")]
    {
        if !ids.iter().any(|it| it == id) {
            command = command.arg(
                Arg::new(id)
                    .long(id)
                    .value_name("FILE")
                    .value_parser(clap::value_parser!(PathBuf))
                    .help(what)
                    .help_heading("Output"),
            );
        }
    }
    command
}

/// An option that takes a list too, if it takes a value; its values are read when the runs are planned.
fn listed(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let help = arg.get_help().map(|help| format!("{help} (or a list)")).unwrap_or_default();
    arg.value_parser(ValueParser::string()).value_delimiter(',').help(help)
}

impl FromArgMatches for SweepArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches
            .subcommand()
            .ok_or_else(|| wrong("a sweep needs an operation, such as dcp-bench sweep write --trim 0,1%"))?;
        let op = Op::ALL.into_iter().find(|op| op.name() == name);
        Self::read(op.ok_or_else(|| wrong("there is no such operation"))?, matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for SweepArgs {
    fn augment_subcommands(parent: Command) -> Command {
        Op::ALL.into_iter().fold(parent, |parent, op| parent.subcommand(command(op)))
    }

    fn augment_subcommands_for_update(parent: Command) -> Command {
        Self::augment_subcommands(parent)
    }

    fn has_subcommand(name: &str) -> bool {
        Op::ALL.iter().any(|op| op.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;
    use crate::tools::Tool;

    fn sweep(line: &str) -> Result<SweepArgs, String> {
        let words = ["dcp-bench", "sweep"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            args::Command::Tool(Tool::Sweep { of }) => Ok(of),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn list_becomes_points_and_the_rest_is_the_same_for_all() {
        let sweep =
            sweep("write -n 7 --trim 0,0.01%,1% -s 1M --icrc --cores 0,1 --json out --quiet").unwrap();
        assert_eq!((&*sweep.option, sweep.values.len()), ("trim", 3));
        let words = sweep.words_of("1%");
        let line: Vec<String> = words.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        assert_eq!((&*line[0], line.last().unwrap().as_str()), ("write", "--trim=1%"));
        for word in ["--iters=7", "--size=1M", "--icrc", "--cores=0,1"] {
            assert!(line.iter().any(|it| it == word), "{word}: {line:?}");
        }
        assert_eq!(line.len(), 6);
        assert!(sweep.quiet && sweep.json == Some("out".into()));
        assert_eq!(sweep.rounds, 1);
    }

    #[test]
    fn every_option_with_a_value_can_be_swept_unless_it_says_no() {
        for name in "size iters duration qp tx-depth rx-depth mtu cq-mod qp-timeout retry-cnt rnr-retry window threads cc \
                     hosts threshold control-bytes trim drop dup reorder corrupt seed link-gbps lb path-weights"
            .split_whitespace()
        {
            assert_eq!(sweep(&format!("write --{name} 1,2")).unwrap().option, name);
        }
        for line in ["--cores 0,1", "--device memif:/tmp/s,id=0", "--ecn 1,2,1%", "--icrc"] {
            assert!(sweep(&format!("write {line}")).unwrap_err().contains("here none does"), "{line}");
        }
    }

    #[test]
    fn one_list_is_wanted_no_more_and_no_less() {
        assert!(sweep("write --trim 1%").unwrap_err().contains("but here none does"));
        assert!(sweep("write --trim 0,1% --size 1,2").unwrap_err().contains("but here 2 do"));
        assert!(sweep("write localhost --trim 0,1%").unwrap_err().contains("HOST means nothing in a sweep"));
        assert!(sweep("write --server --trim 0,1%").unwrap_err().contains("--server means nothing"));
        assert!(sweep("").is_err());
        assert!(sweep("wriet --trim 0,1%").is_err());
    }

    #[test]
    fn wrong_value_is_refused_before_anything_runs() {
        for (line, words) in [
            ("write --trim 0,2", "a probability is 0 to 1"),
            ("write --trim 0,", "a probability is a number such as"),
            ("write --qp 1,16385", "--qp is 16385, but must be 1 to 16384"),
            ("write --size 1K,2X", "a size is a whole number"),
            ("write --size 1K,2K --json - --csv -", "only one of --json, --csv and --svg"),
        ] {
            let failure = sweep(line).unwrap().check().unwrap_err();
            assert!(failure.message.contains(words), "{line}: {failure}");
        }
        assert_eq!(sweep("send --size 1K,2K").unwrap().check(), Ok(()));
    }
}
