//! Every option of fio that is known, and what it does here.
//!
//! Purpose: the one place that says so: job files, the command line, its help, the tests and
//! docs/fio.md read it. Invariant:
//! an option that is accepted changes the plan or carries a warning; all others are refused with
//! the way out. A value that asks for what is done anyway is accepted in silence.

mod command;
mod entry;
mod files;
mod io;
mod reports;
mod rest;
mod times;

pub use entry::{FioOption, OptionEffect};

use crate::study::nearest::nearest as nearest_of;

const AREAS: [(&str, &[FioOption]); 5] = [
    ("Jobs and files", files::ENTRIES),
    ("Requests", io::ENTRIES),
    ("Time, rates and order", times::ENTRIES),
    ("Reports and logs", reports::ENTRIES),
    ("Everything else", rest::ENTRIES),
];

/// Every area of job options with its title, in the order of the documentation.
pub fn areas() -> impl Iterator<Item = (&'static str, &'static [FioOption])> {
    AREAS.into_iter()
}

/// The options of fio's command line that belong to no job.
pub fn of_command() -> &'static [FioOption] {
    command::ENTRIES
}

/// Every known option of jobs.
pub fn entries() -> impl Iterator<Item = &'static FioOption> {
    AREAS.into_iter().flat_map(|(_, entries)| entries)
}

/// The option of a name; dashes and underscores are the same.
pub(super) fn find(name: &str) -> Option<&'static FioOption> {
    find_among(name, entries())
}

/// The option of the command line of a name.
pub(super) fn find_of_command(name: &str) -> Option<&'static FioOption> {
    find_among(name, of_command().iter())
}

fn find_among(
    name: &str,
    mut entries: impl Iterator<Item = &'static FioOption>,
) -> Option<&'static FioOption> {
    let name = name.replace('-', "_");
    entries.find(|entry| entry.names().any(|known| known == name))
}

/// The known name that is most like another; `more` are known beside the catalogue's.
pub(super) fn nearest<'a>(name: &str, more: &'a [String]) -> Option<&'a str> {
    let more = more.iter().map(String::as_str);
    let known = entries().flat_map(FioOption::names).map(|name| -> &'a str { name });
    nearest_of(&name.replace('-', "_"), known.chain(more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_stands_for_one_option() {
        let mut seen = HashSet::new();
        for name in entries().chain(of_command()).flat_map(FioOption::names) {
            assert!(seen.insert(name), "{name} is there twice");
            assert!(!name.contains('-'), "{name}");
        }
        assert!(seen.len() > 230, "{}", seen.len());
    }

    #[test]
    fn names_are_found_by_alias_and_by_likeness() {
        assert_eq!(find("readwrite").map(|entry| entry.name), Some("rw"));
        assert_eq!(find("hugepage-size").map(|entry| entry.name), Some("hugepage_size"));
        assert_eq!(find("RW").map(|entry| entry.name), None);
        assert_eq!(nearest("blocksze", &[]), Some("blocksize"));
        assert_eq!(nearest("xyzzy_frobnicate", &[]), None);
    }
}
