//! The catalogue in the code and the one in the documents are the same.

use iostrata_diagnose::{Subject, catalogue};

const STUDY_DOCS: &str = include_str!("../../../../../docs/study-findings.md");
const WATCH_DOCS: &str = include_str!("../../../../../docs/watch-findings.md");
const DOCS: &str = include_str!("../../../../../docs/findings.md");

/// The names of all entries and the kinds that they give; an entry that refers to another gives
/// none.
fn entries(docs: &'static str) -> Vec<(&'static str, Option<&'static str>)> {
    let entry = |text: &'static str| {
        let (name, rest) = text.split_once('`').unwrap();
        let kind = rest.lines().find_map(|line| line.strip_prefix("- Kind: "));
        (name, kind.and_then(|kind| kind.split([',', '.', ' ']).next()))
    };
    docs.split("### `").skip(1).map(entry).collect()
}

#[test]
fn every_finding_has_an_entry_of_its_kind_and_every_entry_a_finding() {
    for (docs, subject) in
        [(DOCS, Subject::Storage), (STUDY_DOCS, Subject::Study), (WATCH_DOCS, Subject::Recording)]
    {
        let (mut documented, mut known) = (entries(docs), catalogue(subject).collect::<Vec<_>>());
        documented.sort_unstable();
        known.sort_unstable_by_key(|(id, _)| *id);
        let names: Vec<&str> = known.iter().map(|(id, _)| *id).collect();
        assert_eq!(documented.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
        for ((name, of_entry), (_, kind)) in documented.iter().zip(&known) {
            let kind = format!("{kind:?}").to_lowercase();
            assert!(of_entry.is_none_or(|word| word == kind), "{name}: {of_entry:?}, not {kind}");
        }
    }
}

#[test]
fn every_entry_says_everything() {
    for entry in [DOCS, STUDY_DOCS].iter().flat_map(|docs| docs.split("### `").skip(1)) {
        let parts = ["Kind", "Signature", "Confirming points", "Threshold", "Advice", "Planted"];
        for part in parts.into_iter().chain(["False positive", "False negative"]) {
            let part = format!("- {part}:");
            assert!(entry.contains(&part), "{part} is missing in {}", &entry[..40]);
        }
    }
}
