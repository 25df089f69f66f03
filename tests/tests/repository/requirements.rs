//! Every requirement of `docs/PROTOCOL.md` is cited by the code that keeps it and by a test that proves it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dcp_tests::build::repository;

/// Requirements that this version does not build, and why.
const NOT_BUILT: &[(&str, &str)] = &[];
/// Letters of the protocol's requirements.
const LETTERS: [char; 5] = ['P', 'T', 'R', 'S', 'C'];
const SOURCES: [&str; 3] = ["transport", "switch-sw", "tests"];

/// Ids like `T-8` in a text. In a test's name, `t8_` is one too; but `c1_` and its like name fault cases.
fn ids(text: &str, names_count: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, letter) in text.char_indices() {
        let starts =
            text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric() && before != '_');
        if !starts || !LETTERS.contains(&letter.to_ascii_uppercase()) {
            continue;
        }
        let rest = &text[at + 1..];
        let (rest, is_name) = match rest.strip_prefix('-') {
            Some(rest) if letter.is_ascii_uppercase() => (rest, false),
            None if letter.is_ascii_lowercase() && names_count && letter != 'c' => (rest, true),
            _ => continue,
        };
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let ends = rest[digits..].chars().next();
        let whole = if is_name { ends == Some('_') } else { ends.is_none_or(|c| !c.is_alphanumeric()) };
        if digits > 0 && whole {
            found.insert(format!("{}-{}", letter.to_ascii_uppercase(), &rest[..digits]));
        }
    }
    found
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("the repository can be read");
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && name != "requirements.rs" {
            found.push(path);
        }
    }
}

/// What code cites, and what tests cite.
fn citations() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut files, mut code, mut tests) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for source in SOURCES {
        rust_files(&repository().join(source), &mut files);
    }
    for path in files {
        let text = std::fs::read_to_string(&path).expect("sources are text");
        let inside = path.strip_prefix(repository()).expect("below it");
        let is_test = inside.components().any(|part| part.as_os_str() == "tests")
            || inside.file_name().is_some_and(|name| name == "tests.rs");
        let split = if is_test { 0 } else { text.find("#[cfg(test)]\nmod ").unwrap_or(text.len()) };
        code.extend(ids(&text[..split], false));
        tests.extend(ids(&text[split..], true));
    }
    (code, tests)
}

#[test]
fn every_requirement_is_cited_by_code_and_by_a_test() {
    let protocol = std::fs::read_to_string(repository().join("docs/PROTOCOL.md")).expect("it is there");
    let wanted = ids(&protocol, false);
    assert!(wanted.len() >= 50, "only {} requirements found", wanted.len());
    let (code, tests) = citations();
    let not_built: BTreeSet<String> = NOT_BUILT.iter().map(|(id, _)| (*id).to_owned()).collect();
    for id in &not_built {
        assert!(wanted.contains(id), "{id} is not in docs/PROTOCOL.md");
        assert!(!code.contains(id), "{id} is built: take it off the list");
    }
    let built: BTreeSet<&String> = wanted.difference(&not_built).collect();
    let lacking = |cited: &BTreeSet<String>| -> Vec<String> {
        built.iter().filter(|id| !cited.contains(**id)).map(|id| (*id).clone()).collect()
    };
    assert_eq!((lacking(&code), lacking(&tests)), (vec![], vec![]), "cited by no code, and by no test");
}

#[test]
fn ids_are_found_in_prose_and_in_names() {
    let text = "R-4 (T-10), C-1: CVE-7 S-2a x-R-3 fn t16_fence r9_once c5_twice P-";
    let expected = ["C-1", "R-3", "R-4", "R-9", "T-10", "T-16"];
    assert_eq!(ids(text, true).into_iter().collect::<Vec<_>>(), expected);
    assert!(!ids(text, false).contains("T-16"));
}
