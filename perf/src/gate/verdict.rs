//! What counts mean.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::baselines::Baselines;

/// Hundredths of a percent that a count may differ from its baseline.
const TOLERANCE: u64 = 200;
/// How a new baseline is accepted.
const ACCEPT: &str = "`make gate GATE_ARGS=--accept` takes the counts as the new baselines; \
                      commit perf/baselines.json with the change that made them";

/// What came of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All counts are near their baselines.
    Passed,
    /// The baselines are another compiler's; a sentence.
    NotComparable(String),
    /// Cases that are not as their baselines say; a sentence for each, and what to do.
    Failed(String),
}

/// Holds counts against the committed ones.
pub fn judge(baselines: &Baselines, counts: &Baselines) -> Verdict {
    let names: BTreeSet<_> = baselines.hundredths.keys().chain(counts.hundredths.keys()).collect();
    let wrong: Vec<String> =
        names.into_iter().filter_map(|name| complaint(name, baselines, counts)).collect();
    if wrong.is_empty() {
        return Verdict::Passed;
    }
    let wrong = wrong.join("\n");
    if baselines.rustc != counts.rustc {
        return Verdict::NotComparable(format!(
            "{wrong}\nThe baselines are of {}, this is {}: the difference may be the compiler's, so nothing is refused. \
             {ACCEPT}.",
            baselines.rustc, counts.rustc
        ));
    }
    Verdict::Failed(format!("{wrong}\nIf that is meant, {ACCEPT}."))
}

fn complaint(name: &str, baselines: &Baselines, counts: &Baselines) -> Option<String> {
    match (baselines.hundredths.get(name), counts.hundredths.get(name)) {
        (Some(&was), Some(&is)) if was.abs_diff(is) * 10_000 > was * TOLERANCE => {
            let (was_text, is_text, change) = (instructions(was), instructions(is), percent(was, is));
            let advice =
                if is > was { "more than the baseline" } else { "less: the baseline can be lowered" };
            Some(format!("{name}: {is_text} instructions instead of {was_text}, {change} ({advice})"))
        }
        (Some(_), None) => Some(format!("{name} has a baseline, but is no case any more")),
        (None, Some(_)) => Some(format!("{name} has no baseline")),
        _ => None,
    }
}

/// Every count beside its baseline.
pub fn table(baselines: Option<&Baselines>, counts: &Baselines) -> String {
    let mut text =
        format!("{:<28} {:>12} {:>12} {:>9}\n", "instructions per packet", "baseline", "now", "change");
    for (name, &is) in &counts.hundredths {
        let was = baselines.and_then(|baselines| baselines.hundredths.get(name)).copied();
        let (was_text, change) =
            was.map_or_else(Default::default, |was| (instructions(was), percent(was, is)));
        let _ = writeln!(text, "{name:<28} {was_text:>12} {:>12} {change:>9}", instructions(is));
    }
    text
}

fn instructions(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn percent(was: u64, is: u64) -> String {
    format!("{:+.2} %", (is as f64 / was.max(1) as f64 - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rustc: &str, counts: &[(&str, u64)]) -> Baselines {
        let hundredths = counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        Baselines { rustc: rustc.to_owned(), hundredths }
    }

    #[test]
    fn two_percent_pass_and_more_fail_in_both_directions() {
        let baselines = counts("1", &[("a", 10_000)]);
        for (count, passes) in
            [(10_000, true), (10_200, true), (9_800, true), (10_201, false), (9_799, false)]
        {
            let verdict = judge(&baselines, &counts("1", &[("a", count)]));
            assert_eq!(verdict == Verdict::Passed, passes, "{count}: {verdict:?}");
        }
    }

    #[test]
    fn failure_names_the_case_the_change_and_the_way_out() {
        let verdict =
            judge(&counts("1", &[("a", 10_000), ("b", 5)]), &counts("1", &[("a", 11_000), ("b", 5)]));
        let Verdict::Failed(text) = verdict else { panic!("{verdict:?}") };
        for words in ["a: 110.00 instructions instead of 100.00, +10.00 %", "make gate GATE_ARGS=--accept"] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!text.contains("b:"), "{text}");
    }

    #[test]
    fn new_and_lost_cases_are_complaints() {
        let verdict = judge(&counts("1", &[("old", 1)]), &counts("1", &[("new", 1)]));
        let Verdict::Failed(text) = verdict else { panic!("{verdict:?}") };
        assert!(text.contains("new has no baseline") && text.contains("old has a baseline"), "{text}");
    }

    #[test]
    fn another_compiler_refuses_nothing() {
        let verdict = judge(&counts("1", &[("a", 100)]), &counts("2", &[("a", 200)]));
        assert!(matches!(verdict, Verdict::NotComparable(_)), "{verdict:?}");
        assert_eq!(judge(&counts("1", &[("a", 100)]), &counts("2", &[("a", 100)])), Verdict::Passed);
    }

    #[test]
    fn committed_baselines_name_every_case() {
        let baselines = Baselines::read().unwrap();
        let private = ["track/", "wheel/"];
        let public =
            baselines.hundredths.keys().filter(|name| !private.iter().any(|it| name.starts_with(it)));
        let cases: BTreeSet<String> = crate::cases::all().iter().map(|entry| entry.name.to_owned()).collect();
        assert_eq!(public.cloned().collect::<BTreeSet<_>>(), cases);
    }
}
