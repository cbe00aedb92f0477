//! Every option of fio that is known, and what it does here.
//!
//! Purpose: the one place that defines this: job files, the command line, its help, the tests and
//! docs/fio.md read it. Invariant: an option that is accepted changes the plan or carries a
//! warning; all others are refused with the way out. A value that requests what is done anyway is
//! accepted without a warning.

mod entry;
mod files;
mod io;
mod reports;
mod rest;
mod times;

pub use entry::{FioOption, OptionEffect};

use crate::fio::catalogue::entry::{changes, refused, warned};
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
    ENTRIES
}

/// Every known option of jobs.
pub fn entries() -> impl Iterator<Item = &'static FioOption> {
    AREAS.into_iter().flat_map(|(_, entries)| entries)
}

/// The option of jobs of a name; dashes and underscores are the same.
pub fn find(name: &str) -> Option<&'static FioOption> {
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

/// The known name that is most like another; `more` are known in addition to the catalogue's.
pub fn nearest<'a>(name: &str, more: &'a [String]) -> Option<&'a str> {
    let more = more.iter().map(String::as_str);
    let known = entries().flat_map(FioOption::names).map(|name| -> &'a str { name });
    nearest_of(&name.replace('-', "_"), known.chain(more))
}

const NO_SERVER: &str = "jobs run on this machine only; start iostrata on each host";
const NO_TRIGGER: &str = "job files run no programs; run it alongside iostrata";

pub(super) const ENTRIES: &[FioOption] = &[
    changes("readonly", "", "a job that writes is refused").bare(),
    refused("client", "h", NO_SERVER),
    refused("server", "", NO_SERVER).bare(),
    refused("daemonize", "f", NO_SERVER),
    refused("remote_config", "f", NO_SERVER),
    refused("trigger_file", "f", NO_TRIGGER),
    refused("trigger_timeout", "1", NO_TRIGGER),
    refused("trigger", "true", NO_TRIGGER),
    refused("trigger_remote", "true", NO_TRIGGER),
    refused("merge_blktrace_only", "", "traces are not merged; use fio for that").bare(),
    refused("inflate_log", "f", "logs are written plain; use fio for its own").bare(),
    refused("crctest", "", "checksums are not timed; use fio for that").bare(),
    refused("cpuclock_test", "", "the clock is checked at each start; leave it out").bare(),
    warned("eta_interval", "500", "progress is shown as it changes"),
    warned("eta_newline", "1", "progress stays in one line"),
    warned("debug", "io", "there are no lines for debuggers"),
    warned("idle_prof", "percpu", "processor time of the workers is always reported"),
    warned("bandwidth_log", "", "logs are those of the jobs; see write_bw_log").bare(),
    warned("alloc_size", "64", "room is made as needed"),
    warned("max_jobs", "8", "room is made as needed"),
    warned("warnings_fatal", "", "warnings end nothing").bare(),
    warned("aux_path", "d", "state is kept in the run directory; see --out"),
];

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
