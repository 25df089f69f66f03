//! What the two processes say to each other while and after a run.

use serde::{Deserialize, Serialize};

use crate::outcome::Verification;
use crate::traffic::Count;

/// Queue pairs told of in one line: 42 bytes each at most, and a line has 64 KiB.
const COUNTS: usize = 1024;

/// One message.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// From who sends: messages posted and completed on its next queue pairs.
    Counts(Vec<(u64, u64)>),
    /// From who sends: that was the last of them; compare what has completed.
    Compare(Compare),
    /// What was found. Comes from who receives, and at the end from both, for both.
    Verdict(Verdict),
    /// From who does not decide when it ends, or from either when both send: end the run.
    Stop,
    /// Where both send: messages and bytes completed so far.
    Progress(u64, u64),
    /// Where both send: all of this side's messages have completed.
    Ended(Ended),
    /// The next run can begin.
    Ready,
    /// The run has failed over there.
    Failed(String),
}

/// What one of two that send did.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, Debug)]
pub(super) struct Ended {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// From its begin to its end, in nanoseconds.
    pub(super) elapsed_ns: u64,
    /// Its fastest stretch, in bytes per second.
    pub(super) peak: f64,
}

/// Why a comparison is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Compare {
    /// Buffers are to be used again.
    More,
    /// The run is done.
    Done,
    /// The user has stopped the run; nobody waits for long.
    Stopped,
}

/// A verification on its way to the other process.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(super) struct Verdict {
    verified: Option<bool>,
    mismatch: Option<String>,
}

impl From<&Verification> for Verdict {
    fn from(verification: &Verification) -> Self {
        let mismatch = match verification {
            Verification::Failed(mismatch) => Some(mismatch.clone()),
            Verification::Passed | Verification::NotChecked => None,
        };
        Self { verified: verification.verified(), mismatch }
    }
}

impl From<Verdict> for Verification {
    fn from(verdict: Verdict) -> Self {
        match verdict.verified {
            Some(true) => Self::Passed,
            Some(false) => Self::Failed(dcp::connect::printable(&verdict.mismatch.unwrap_or_default())),
            None => Self::NotChecked,
        }
    }
}

/// The lines that tell how far each queue pair came.
pub(super) fn told(counts: &[Count], why: Compare) -> Vec<Word> {
    let chunk =
        |chunk: &[Count]| Word::Counts(chunk.iter().map(|count| (count.posted, count.completed)).collect());
    counts.chunks(COUNTS).map(chunk).chain([Word::Compare(why)]).collect()
}

/// Puts counts together.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<Count>);

impl Told {
    pub(super) fn add(&mut self, counts: &[(u64, u64)], qps: usize) {
        // More than there can be shows in `take`.
        let room = (qps + 1).saturating_sub(self.0.len());
        let count = |&(posted, completed): &(u64, u64)| Count { posted, completed, checked: 0 };
        self.0.extend(counts.iter().take(room).map(count));
    }

    /// The counts of all queue pairs, unless they cannot be: no more is under way than `depth`, and none goes back
    /// behind what has been compared.
    pub(super) fn take(&mut self, checked: &[u64], depth: u64) -> Option<Vec<Count>> {
        let mut counts = std::mem::take(&mut self.0);
        for (count, &checked) in counts.iter_mut().zip(checked) {
            count.checked = checked;
        }
        let is_possible = |count: &Count| {
            count.checked <= count.completed
                && count.completed <= count.posted
                && count.posted - count.completed <= depth
        };
        (counts.len() == checked.len() && counts.iter().all(is_possible)).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(word: &Word) -> Word {
        serde_json::from_value(serde_json::to_value(word).unwrap()).unwrap()
    }

    #[test]
    fn counts_of_many_queue_pairs_come_whole() {
        let count = |i| Count { posted: u64::MAX - i, completed: u64::MAX - i - 1, checked: 0 };
        let counts: Vec<Count> = (0..4096).map(count).collect();
        let words = told(&counts, Compare::Done);
        assert_eq!(words.len(), 5);
        let mut heard = Told::default();
        for word in &words {
            assert!(serde_json::to_string(word).unwrap().len() < dcp::connect::LINE_BYTES_MAX);
            if let Word::Counts(counts) = through(word) {
                heard.add(&counts, 4096);
            }
        }
        assert_eq!(through(&words[4]), Word::Compare(Compare::Done));
        assert_eq!(heard.take(&vec![0; 4096], 1), Some(counts));
    }

    #[test]
    fn counts_that_cannot_be_are_none() {
        for (said, checked) in [
            (vec![], 0),
            (vec![(1, 1), (1, 1)], 0),
            (vec![(1, 2)], 0),
            (vec![(9, 0)], 0),
            (vec![(3, 3)], 4),
            (vec![(1, 1); 5000], 0),
        ] {
            let mut heard = Told::default();
            heard.add(&said, 1);
            assert_eq!(heard.take(&[checked], 8), None, "{said:?}");
        }
    }

    #[test]
    fn verdicts_cross_the_channel_without_escapes() {
        for verification in [Verification::Passed, Verification::NotChecked] {
            assert_eq!(Verification::from(Verdict::from(&verification)), verification);
        }
        let wrong = Verification::Failed("queue \u{1b}[2Jpair 3\n".to_owned());
        let heard = Verification::from(Verdict::from(&wrong));
        assert_eq!(heard, Verification::Failed("queue [2Jpair 3".to_owned()));
    }
}
