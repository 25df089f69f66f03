//! Threads of a run.

use clap::ValueEnum;

/// Which threads drive the endpoints and the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Threads {
    /// All on one thread, in turn.
    Inline,
    /// One pinned thread per core, three at most.
    Split,
}

impl Threads {
    /// Name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Split => "split",
        }
    }
}
