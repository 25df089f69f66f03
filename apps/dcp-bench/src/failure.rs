//! Why a run failed, for people and for programs.

use std::fmt;

use crate::net::NetCounters;

/// What a failure comes from; decides the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The transfer started and did not finish, or its data was wrong.
    Transfer,
    /// The command line asks for something that does not exist or makes no sense.
    Usage,
    /// The machine lacks something: a device, memory, a permission.
    Environment,
    /// The user stopped the run before it had results.
    Interrupted,
}

impl FailureKind {
    /// Exit code of the program.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Transfer => 1,
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Interrupted => 130,
        }
    }

    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Usage => "usage",
            Self::Environment => "environment",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Completion status, by name and number, as InfiniBand verbs spell it: `RETRY_EXC_ERR (12)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Name.
    pub name: &'static str,
    /// Number.
    pub number: u32,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.number)
    }
}

/// Where to look when the machine lacks something.
const CHECK: &str = "`dcp-bench check` tells what this machine offers";

/// A failed run.
///
/// `message` is one sentence without a full stop that names what failed and where (queue pair, peer, file);
/// `hint` is one that says what to do, or the likely cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What it comes from.
    pub kind: FailureKind,
    /// Status of the completion that failed, where there is one.
    pub status: Option<Status>,
    /// What failed.
    pub message: String,
    /// What to do about it, or the likely cause.
    pub hint: Option<String>,
    /// What the network had done until then, where anything ran.
    pub net: Option<Box<NetCounters>>,
}

impl Failure {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), hint: None, net: None }
    }

    /// The transfer started and failed.
    pub fn transfer(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Transfer, message)
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// The machine lacks something.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Environment, message)
    }

    /// Stopped by the user before there was any result.
    pub fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "stopped before the transfer had begun")
    }

    /// Stopped by the user a second time, before the results were there.
    pub fn cut_off() -> Self {
        Self::new(FailureKind::Interrupted, "stopped at once, before the results were there")
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what to do about it, unless that was said.
    #[must_use]
    pub fn or_hint(mut self, hint: impl FnOnce() -> String) -> Self {
        self.hint.get_or_insert_with(hint);
        self
    }

    /// Adds the completion status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds what the network had done until then.
    #[must_use]
    pub fn with_net(mut self, net: NetCounters) -> Self {
        self.net = Some(Box::new(net));
        self
    }

    /// What to do about it, and where to look when the machine lacks something.
    pub fn advice(&self) -> Option<String> {
        let hint = self.hint.as_deref();
        if self.kind != FailureKind::Environment {
            return hint.map(str::to_owned);
        }
        Some(hint.map_or_else(|| CHECK.to_owned(), |hint| format!("{hint}; {CHECK}")))
    }

    /// Exit code of the program.
    pub const fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }
}

impl fmt::Display for Failure {
    /// A few lines: what failed, the status, the counters, what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(status) = self.status {
            write!(f, "\n  status: {status}")?;
        }
        if let Some(net) = &self.net {
            write!(f, "\n  network: {net}")?;
        }
        if let Some(advice) = self.advice() {
            write!(f, "\n  hint: {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_the_exit_code_of_the_contract() {
        let codes = [
            Failure::transfer("").exit_code(),
            Failure::usage("").exit_code(),
            Failure::environment("").exit_code(),
            Failure::interrupted().exit_code(),
        ];
        assert_eq!(codes, [1, 2, 3, 130]);
    }

    #[test]
    fn only_what_the_machine_lacks_points_to_check() {
        assert_eq!(Failure::environment("").advice().as_deref(), Some(CHECK));
        let advice = Failure::environment("").with_hint("look").advice().unwrap();
        assert_eq!(advice, format!("look; {CHECK}"));
        assert_eq!(Failure::transfer("").advice(), None);
        assert_eq!(Failure::usage("").with_hint("look").advice().as_deref(), Some("look"));
    }

    #[test]
    fn failure_names_status_counters_and_hint() {
        let failure = Failure::transfer("queue pair 3 to 10.0.0.2 stopped answering")
            .with_status(Status { name: "RETRY_EXC_ERR", number: 12 })
            .with_net(NetCounters { data_packets: 7, dropped: 7, ..NetCounters::default() })
            .with_hint("every packet was lost");
        let text = failure.to_string();
        assert!(text.starts_with("queue pair 3 to 10.0.0.2 stopped answering\n"));
        assert!(text.contains("RETRY_EXC_ERR (12)"));
        assert!(text.contains("7 packets"));
        assert!(text.ends_with("hint: every packet was lost"));
    }
}
