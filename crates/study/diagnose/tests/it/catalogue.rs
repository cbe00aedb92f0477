//! The catalogue in the code and the one in the documents are the same.

use iostrata_diagnose::{FindingId, STUDY_FINDINGS, WATCH_FINDINGS};

const STUDY_DOCS: &str = include_str!("../../../../../docs/study-findings.md");
const WATCH_DOCS: &str = include_str!("../../../../../docs/watch-findings.md");
const DOCS: &str = include_str!("../../../../../docs/findings.md");

fn entries(docs: &'static str) -> Vec<&'static str> {
    docs.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect()
}

#[test]
fn every_statement_of_a_study_has_an_entry() {
    let (mut documented, mut known) = (entries(STUDY_DOCS), STUDY_FINDINGS.to_vec());
    documented.sort_unstable();
    known.sort_unstable();
    assert_eq!(documented, known);
}

#[test]
fn every_statement_of_a_recording_has_an_entry() {
    let (mut documented, mut known) = (entries(WATCH_DOCS), WATCH_FINDINGS.to_vec());
    documented.sort_unstable();
    known.sort_unstable();
    assert_eq!(documented, known);
}

#[test]
fn every_finding_has_an_entry_and_every_entry_a_finding() {
    let mut documented = entries(DOCS);
    let mut known: Vec<&str> = FindingId::ALL.iter().map(|id| id.name()).collect();
    documented.sort_unstable();
    known.sort_unstable();
    assert_eq!(documented, known);
}

#[test]
fn every_entry_says_everything() {
    for entry in DOCS.split("### `").skip(1) {
        let parts = ["Kind", "Signature", "Confirming points", "Threshold", "Advice", "Planted"];
        for part in parts.into_iter().chain(["False positive", "False negative"]) {
            let part = format!("- {part}:");
            assert!(entry.contains(&part), "{part} is missing in {}", &entry[..40]);
        }
    }
}
