//! The lines of a journal stay as they are: a later program undoes what an earlier one wrote down,
//! and the other way round.

use std::collections::BTreeSet;
use std::fs;
use std::mem::discriminant;

use super::{after_a_kill, assert_same, begin, make_every_kind};
use crate::error::ChangeError;
use crate::journal::{Record, parse};
use crate::kind::{self, JournalEntry, KINDS, stands_on};
use crate::tests::fake::FakePlatform;
use crate::undone::Undone;
use crate::{GroupVersion, Session, describe};

/// What `make_every_kind` leaves in its journal, as version 1 of the lines has it.
const LINES: &str = include_str!("journal.jsonl");
/// The same in words.
const WORDS: &str = include_str!("journal.txt");

#[test]
fn the_lines_of_a_journal_stay_as_they_are() {
    let (_dir, state, machine) = begin(GroupVersion::V2);
    let platform = FakePlatform::on(machine.clone(), &state, GroupVersion::V2);
    let mut session = Session::begin(&state, platform).unwrap();
    make_every_kind(&mut session);
    let written = fs::read_to_string(&state.journals()[0]).unwrap();
    for (now, then) in written.lines().zip(LINES.lines()) {
        assert_eq!(now, then);
    }
    assert_eq!(written.lines().count(), LINES.lines().count());
    // Undone from the lines that are kept.
    let changed = session.platform().machine.borrow().clone();
    let (last, report) = after_a_kill(LINES.as_bytes(), &changed, GroupVersion::V2);
    assert!(report.is_settled(), "{report:#?}");
    assert_eq!(report.journals[0].damaged_lines, 0);
    assert_same(&last, &machine, &format!("{report:#?}"));
}

#[test]
fn a_line_that_is_read_is_written_the_same() {
    for line in LINES.lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

/// The entries of every kind, in place.
fn entries() -> Vec<JournalEntry> {
    let entries = parse(LINES.as_bytes()).entries;
    let tag =
        |entry: &JournalEntry| serde_json::to_value(&entry.change).unwrap()["change"].to_string();
    let kinds: BTreeSet<String> = entries.iter().map(tag).collect();
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
    entries
}

fn undo(entry: &JournalEntry) -> Result<Undone, ChangeError> {
    let (_dir, state, _) = begin(GroupVersion::V2);
    kind::undo(&FakePlatform::new(&state, GroupVersion::V2), entry, &[])
}

#[test]
fn what_was_before_another_kind_of_change_is_damage() {
    let entries = entries();
    let mut damaged = 0;
    for one in entries.iter().filter(|entry| entry.change.is_lasting()) {
        for other in &entries {
            let mixed = JournalEntry { prior: other.prior.clone(), ..one.clone() };
            let belongs = discriminant(&one.prior) == discriminant(&other.prior);
            let is_damaged = matches!(undo(&mixed), Err(ChangeError::Damaged { .. }));
            assert_eq!(is_damaged, !belongs, "{mixed:#?}");
            damaged += u32::from(is_damaged);
        }
    }
    assert!(damaged > 300, "{damaged}");
}

/// Each change in words, with its present value, and the numbers of the changes that stand on it.
#[test]
fn the_words_of_every_kind_and_what_stands_on_what_stay_as_they_are() {
    let (_dir, state, _) = begin(GroupVersion::V2);
    let platform = FakePlatform::new(&state, GroupVersion::V2);
    let entries = entries();
    let line = |one: &JournalEntry| {
        let above = entries.iter().filter(|other| stands_on(&other.change, &one.change));
        let above: Vec<String> = above.map(|other| other.id.to_string()).collect();
        let (words, above) = (describe::line(&platform, &one.change), above.join(" "));
        format!("{}. {words}\n    below: {above}\n", one.id)
    };
    assert_eq!(entries.iter().map(line).collect::<String>(), WORDS);
}
