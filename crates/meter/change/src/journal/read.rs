//! What a journal tells, whatever happened to its last line.
//!
//! Invariant: never fails; a line that cannot be read in the middle is counted, not skipped in
//! silence.

use std::path::PathBuf;

use crate::journal::{JournalEntry, Record, VERSION};
use crate::owner::Owner;
use crate::tokens::ChangeId;

/// What a journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) owner: Option<Owner>,
    /// Changes that are not undone, in the order in which they were made.
    pub(crate) entries: Vec<JournalEntry>,
    /// Files that were announced, each with when.
    pub(crate) files: Vec<(PathBuf, u64)>,
    /// Bytes of the whole lines.
    pub(crate) whole_bytes: u64,
    /// Whole lines that could not be read.
    pub(crate) damaged_lines: u32,
}

/// Reads the bytes of a journal.
pub(crate) fn parse(bytes: &[u8]) -> Content {
    let mut content = Content::default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    content.whole_bytes = end as u64;
    for line in bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(record) => content.take(record),
            Err(_) => content.damaged_lines += 1,
        }
    }
    content
}

impl Content {
    fn take(&mut self, record: Record) {
        match record {
            Record::Journal { version, owner } => {
                // A newer version may say more than is understood here.
                self.damaged_lines += u32::from(version > VERSION);
                self.owner = Some(owner);
            }
            Record::Intent { id, change, before: prior } => {
                self.entries.push(JournalEntry::intended(id, change, prior));
            }
            Record::Adjusting { id, settings } => {
                if let Some(entry) = self.entry(id) {
                    entry.adjusting.extend(settings);
                }
            }
            Record::Done { id, after } => {
                if let Some(entry) = self.entry(id) {
                    entry.effect = Some(after);
                    entry.adjusting.clear();
                }
            }
            Record::HandedOver { to } => self.owner = Some(to),
            Record::Undoing { id } => {
                if let Some(entry) = self.entry(id) {
                    entry.was_undoing = true;
                }
            }
            Record::Undone { id, .. } => self.entries.retain(|entry| entry.id != id),
            Record::Files { at_us, paths } => {
                self.files.extend(paths.into_iter().map(|path| (path, at_us)));
            }
        }
    }

    fn entry(&mut self, id: ChangeId) -> Option<&mut JournalEntry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::effect::{Effect, How, Prior};

    fn lines(records: &[Record]) -> Vec<u8> {
        let line = |record| serde_json::to_string(record).unwrap() + "\n";
        records.iter().map(line).collect::<String>().into_bytes()
    }

    fn three() -> Vec<u8> {
        let intent = |id| Record::Intent {
            id: ChangeId(id),
            change: Change::DropCaches,
            before: Prior::Nothing,
        };
        let owner = Owner { pid: 1, start_ticks: 2, boot_id: "b".into() };
        lines(&[
            Record::Journal { version: VERSION, owner },
            intent(1),
            Record::Done { id: ChangeId(1), after: Effect::Dropped },
            intent(2),
            Record::Undoing { id: ChangeId(1) },
            Record::Undone { id: ChangeId(1), how: How::PutBack },
            intent(3),
        ])
    }

    #[test]
    fn what_is_not_undone_is_found() {
        let content = parse(&three());
        let ids: Vec<u32> = content.entries.iter().map(|entry| entry.id.0).collect();
        assert_eq!(ids, [2, 3]);
        assert_eq!((content.damaged_lines, content.owner.unwrap().pid), (0, 1));
    }

    #[test]
    fn any_prefix_is_read_without_damage() {
        let bytes = three();
        for end in 0..bytes.len() {
            let content = parse(&bytes[..end]);
            assert_eq!(content.damaged_lines, 0, "{end}");
            assert!(content.whole_bytes <= end as u64);
        }
    }

    #[test]
    fn damage_in_the_middle_is_counted() {
        let mut bytes = three();
        bytes.splice(0..0, *b"{\"record\":\"unheard_of\"}\n");
        let content = parse(&bytes);
        assert_eq!((content.damaged_lines, content.entries.len()), (1, 2));
    }
}
