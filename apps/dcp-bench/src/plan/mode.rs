//! What a run measures, and by what it sees that a message has come.

/// What a run measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// How much goes through.
    Bandwidth,
    /// How long one message takes, with nothing else under way.
    Latency,
}

impl Mode {
    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Latency => "lat",
        }
    }
}

/// How a side of a latency test sees that a message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// By its last byte in memory, as perftest does.
    LastByte,
    /// By the completion of a receive that its immediate data takes.
    Immediate,
    /// By the completion of the receive that it fills.
    Receive,
    /// By its own completion, which comes with the answer.
    Completion,
}

impl Trigger {
    /// What is measured of writes of several sizes, for people.
    pub const LAST_BYTE_OR_IMMEDIATE: &str = "half a round trip; answered when the last byte is seen, above one MTU when immediate data is received";

    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LastByte => "last_byte",
            Self::Immediate => "immediate",
            Self::Receive => "receive",
            Self::Completion => "completion",
        }
    }

    /// Whether latencies are halves of round trips.
    pub const fn is_halved(self) -> bool {
        !matches!(self, Self::Completion)
    }

    /// What is measured, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::LastByte => "half a round trip; a message is answered when its last byte is seen",
            Self::Immediate => "half a round trip; a message is answered when its immediate data is received",
            Self::Receive => "half a round trip; a message is answered when it is received",
            Self::Completion => "a full round trip, from the post to the completion",
        }
    }
}
