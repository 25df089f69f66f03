//! Lines of the control channel: from bytes to what they say.

use dcp_wire::PKey;
use serde_json::{Value, json};

use super::error::{ConnectError, Refusal};
use super::offer::Offer;
use super::wire_form;

/// Longest line that is taken, in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub enum Line {
    /// An offer; with the key, if it is the connecting side's.
    Hello(Box<Offer>, Option<PKey>),
    /// Receives are posted, and the queue pair takes packets.
    Ready,
    /// No connection, and why.
    Refused(String),
    /// From application to application.
    Message(Value),
    /// An orderly end.
    Bye,
}

impl Line {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// No JSON, no line of ours, another version, or a value that cannot be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut value: Value = serde_json::from_slice(bytes)
            .map_err(|error| Refusal::Malformed { reason: error.to_string() })?;
        if value.get("dcp").is_some() {
            let (offer, pkey) = wire_form::read(value)?;
            return Ok(Self::Hello(Box::new(offer), pkey));
        }
        let is_true = |name: &str| value.get(name) == Some(&Value::Bool(true));
        if is_true("ready") {
            return Ok(Self::Ready);
        }
        if is_true("bye") {
            return Ok(Self::Bye);
        }
        if let Some(sentence) = value.get("refused").and_then(Value::as_str) {
            return Ok(Self::Refused(printable(sentence)));
        }
        match value.get_mut("message") {
            Some(message) => Ok(Self::Message(message.take())),
            None => Err(Refusal::Malformed { reason: "no protocol version".to_owned() }),
        }
    }

    /// The line with its end.
    pub fn print(&self) -> String {
        let mut text = match self {
            Self::Hello(offer, pkey) => wire_form::print(offer, *pkey),
            Self::Ready => json!({ "ready": true }).to_string(),
            Self::Refused(sentence) => json!({ "refused": sentence }).to_string(),
            Self::Message(value) => json!({ "message": value }).to_string(),
            Self::Bye => json!({ "bye": true }).to_string(),
        };
        text.push('\n');
        text
    }
}

/// Characters of a sentence from another process that are shown.
const SENTENCE_MAX: usize = 300;

/// What a terminal may be given of a text from another process: its first 300 characters, without line breaks, escapes,
/// and marks that change the direction of writing.
pub fn printable(text: &str) -> String {
    let turns = |c: &char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| !c.is_control() && !turns(c)).take(SENTENCE_MAX).collect()
}

/// Puts lines together from what a socket gives.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
}

impl LineBuffer {
    /// Adds what came.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line.
    ///
    /// # Errors
    /// More bytes than a line may have, and no end in them.
    pub fn poll_line(&mut self) -> Result<Option<Vec<u8>>, ConnectError> {
        match self.bytes.iter().position(|&byte| byte == b'\n') {
            Some(end) if end <= LINE_BYTES_MAX => {
                let rest = self.bytes.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.bytes, rest);
                line.pop();
                Ok(Some(line))
            }
            None if self.bytes.len() <= LINE_BYTES_MAX => Ok(None),
            _ => Err(ConnectError::LineTooLong),
        }
    }
}
