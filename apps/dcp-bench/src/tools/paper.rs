//! The man page and the shell completions, from the options themselves.

use std::io::{self, Write};

use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::Cli;
use crate::console::print;
use crate::failure::Failure;

/// Options of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    shell: ShellName,
}

/// Shells that completions are made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

const EXIT_CODES: [(&str, &str); 5] = [
    ("0", "Success; the data was verified."),
    ("1", "The transfer failed, or the data was wrong; of a sweep: one run failed."),
    ("2", "Wrong usage."),
    ("3", "The machine lacks something; dcp-bench check tells what it offers."),
    ("130", "Stopped by Ctrl-C or SIGTERM; results until then are printed."),
];
const EXAMPLES: [(&str, &str); 4] = [
    (
        "dcp-bench write --size 1M --trim 1%",
        "In one process, through a switch that trims one packet in a hundred.",
    ),
    (
        "dcp-bench write --server --device memif:/tmp/dcp.sock --ip 10.0.0.1/24",
        "Wait for a client in another process.",
    ),
    ("dcp-bench write localhost --device memif:/tmp/dcp.sock --ip 10.0.0.2/24", "Be that client."),
    (
        "dcp-bench sweep write --size 1M --trim 0,0.1%,1% --svg out.svg",
        "What trimming costs, as a table and a plot.",
    ),
];

/// Prints the completions of one shell.
pub(super) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let shell = match args.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    show(&script(shell))
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "dcp-bench", &mut script);
    // clap_complete 4.6 spells a program with a hyphen in two ways in one script for bash, which then completes nothing.
    String::from_utf8_lossy(&script).replace("dcp__subcmd__bench", "dcp__bench")
}

/// Prints the man page.
pub(super) fn man() -> Result<u8, Failure> {
    let page =
        page().map_err(|error| Failure::environment(format!("the man page cannot be made: {error}")))?;
    show(&String::from_utf8_lossy(&page))
}

fn show(text: &str) -> Result<u8, Failure> {
    print(&mut io::stdout().lock(), text)?;
    Ok(0)
}

/// One page for everything: the operations have the same options.
fn page() -> io::Result<Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    let child = |name: &str| command.find_subcommand(name).cloned().unwrap_or_else(|| Command::new("none"));
    let operation = Man::new(child("write"));
    let mut page = Vec::new();
    let man = Man::new(command.clone()).manual("DCP");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(&mut page)?;
    man.render_description_section(&mut page)?;
    subcommands(&command, &mut page)?;
    // The options of an operation, under their own headings and under OPTIONS.
    operation.render_options_section(&mut page)?;
    definitions(&mut page, "EXIT STATUS", &EXIT_CODES)?;
    definitions(&mut page, "EXAMPLES", &EXAMPLES)?;
    Ok(page)
}

fn synopsis(page: &mut impl Write) -> io::Result<()> {
    let forms = [
        "OPERATION [HOST | --server] [OPTIONS]",
        "sweep OPERATION [OPTIONS] --OPTION VALUE,VALUE...",
        "report FILE... -o FILE",
        "check [--json [FILE]]",
        "man",
        "completions bash|zsh|fish",
    ];
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for form in forms {
        roff.text([bold("dcp-bench"), roman(format!(" {form}"))]);
        roff.control("br", []);
    }
    roff.to_writer(page)
}

/// All of them; clap_mangen's own list names pages that do not exist.
fn subcommands(command: &Command, page: &mut impl Write) -> io::Result<()> {
    let about = |it: &Command| it.get_about().map(ToString::to_string).unwrap_or_default();
    let list: Vec<(String, String)> =
        command.get_subcommands().map(|it| (it.get_name().to_owned(), about(it))).collect();
    definitions(page, "OPERATIONS AND OTHER COMMANDS", &list)
}

fn definitions(
    page: &mut impl Write,
    head: &str,
    list: &[(impl AsRef<str>, impl AsRef<str>)],
) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [head]);
    for (term, text) in list {
        roff.control("TP", []);
        roff.text([bold(term.as_ref())]);
        roff.text([roman(text.as_ref())]);
    }
    roff.to_writer(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn man_page_has_every_subcommand_and_every_option() {
        let page = String::from_utf8(page().unwrap()).unwrap().replace("\\-", "-");
        let mut command = Cli::command();
        command.build();
        for subcommand in command.get_subcommands() {
            assert!(
                page.contains(&format!(".TP\n\\fB{}\\fR\n", subcommand.get_name())),
                "{}",
                subcommand.get_name()
            );
        }
        let write = command.find_subcommand("write").unwrap();
        for option in write.get_arguments().filter_map(|arg| arg.get_long()) {
            assert!(page.contains(&format!("--{option}")), "--{option}");
        }
        for head in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES"] {
            let quoted = format!(".SH \"{head}\"");
            assert!(page.contains(&format!(".SH {head}")) || page.contains(&quoted), "{head}");
        }
    }
}
