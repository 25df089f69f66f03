//! Why the program ends early: a sentence and an exit code.

use std::fmt;

/// A sentence for the user, and what it means for the exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The controlled program failed: exit code 1.
    Program(String),
    /// What was asked for makes no sense: exit code 2.
    Usage(String),
    /// The machine lacks something: exit code 3.
    Environment(String),
    /// A signal ended it: exit code 130.
    Interrupted,
}

impl Failure {
    /// The controlled program failed.
    pub fn program(sentence: impl fmt::Display) -> Self {
        Self::Program(sentence.to_string())
    }

    /// What was asked for makes no sense.
    pub fn usage(sentence: impl fmt::Display) -> Self {
        Self::Usage(sentence.to_string())
    }

    /// The machine lacks something.
    pub fn environment(sentence: impl fmt::Display) -> Self {
        Self::Environment(sentence.to_string())
    }

    /// Exit code of the program.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Program(_) => 1,
            Self::Usage(_) => 2,
            Self::Environment(_) => 3,
            Self::Interrupted => 130,
        }
    }

    /// Name in the JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Program(_) => "program",
            Self::Usage(_) => "usage",
            Self::Environment(_) => "environment",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(sentence) | Self::Usage(sentence) | Self::Environment(sentence) => {
                f.write_str(sentence)
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Failure {}
