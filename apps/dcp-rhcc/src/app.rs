//! The program from its command line to its exit code.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;

use crate::antagonist::{Antagonist, AntagonistConfig};
use crate::clock::{now_ns, rest};
use crate::console::Console;
use crate::failure::Failure;
use crate::modes::Program;
use crate::plan::Plan;
use crate::settings::{Cli, ControlArgs, HogArgs, Other};
use crate::{report, run};

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
    let result = match cli.other {
        Some(Other::Hog(args)) => hog(&args),
        None => control(cli.control),
    };
    match result {
        Ok(()) => 0,
        Err(failure) => {
            let _ = writeln!(io::stderr().lock(), "dcp-rhcc: {failure}");
            failure.exit_code()
        }
    }
}

fn control(args: ControlArgs) -> Result<(), Failure> {
    let mut console = Console::open(args.json.as_deref(), args.quiet)?;
    let result = Plan::new(args).and_then(|plan| run::run(&plan, &mut console));
    result.inspect_err(|failure| {
        // Where it cannot be written, the sentence on stderr must do.
        let _ = console.object(&report::error(failure));
    })
}

/// Hogs until a signal comes or the time is over; their speed every second.
fn hog(args: &HogArgs) -> Result<(), Failure> {
    let came = run::watch().map_err(Failure::environment)?;
    let cores = args.cores.clone().unwrap_or_default().0;
    let hogs = args.processes.map_or(cores.len().max(1), usize::from);
    let config = AntagonistConfig { hogs, cores, mib: args.mib, program: Program::this() };
    let antagonist = Antagonist::start_with(config)
        .map_err(|error| Failure::environment(format!("cannot run hogs: {error}")))?;
    let group = match (antagonist.cgroup(), antagonist.why_no_cgroup()) {
        (Some(group), _) => format!("in {}", group.display()),
        (None, why) => format!("in no group of their own: {}", why.unwrap_or("unknown")),
    };
    let _ = writeln!(io::stderr().lock(), "dcp-rhcc: {hogs} hogs {group}");
    let start = now_ns();
    let end = args
        .duration
        .map_or(u64::MAX, |it| start.saturating_add(u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)));
    let (mut last_ns, mut last) = (start, antagonist.work_done());
    while came.load(Ordering::Relaxed) == 0 && now_ns() < end {
        rest(Duration::from_millis(50));
        let now = now_ns();
        if now - last_ns < 1_000_000_000 {
            continue;
        }
        let done = antagonist.work_done();
        // Bytes in a nanosecond are GB in a second.
        #[expect(clippy::cast_precision_loss, reason = "a report")]
        let speed = (done - last) as f64 / (now - last_ns) as f64;
        let _ = writeln!(io::stdout().lock(), "{speed:.3} GB/s");
        (last_ns, last) = (now, done);
    }
    Ok(())
}
