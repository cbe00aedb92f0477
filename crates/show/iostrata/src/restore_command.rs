//! `iostrata restore`: puts back what a killed run left changed and removes its files; and the
//! notes about it.

use std::path::Path;

use iostrata_change::{
    JournalReport, JournalState, LeftFile, Leftover, MeasuringFiles, RestoreReport, StateDir,
    System, Thing, leftovers, remove_left_files, restore, restore_server,
};
use iostrata_server::{Credentials, MySqlServers, ServerAddress};
use iostrata_stats::units;

use crate::args::RestoreArgs;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;
use crate::test_database::server_address;

/// Changes named in the note; more are counted.
const NAMED: usize = 3;

/// Runs the command.
///
/// # Errors
/// When something could not be put back: it is listed and stays in the journal.
pub fn run(args: &RestoreArgs) -> Result<(), ExitError> {
    let state = StateDir::of_user();
    let credentials = args.login.credentials();
    let (report, what) = match &args.target {
        None => (restore(&state, &reaching(MySqlServers { credentials, known: vec![] })), None),
        // An embedded engine's settings end with the process that has it open.
        Some(target) if target.starts_with("engine:") => {
            (RestoreReport::default(), Some(target.clone()))
        }
        Some(target) => {
            let address = address(target, &credentials)?;
            let named = address.to_string();
            let servers = MySqlServers { credentials, known: vec![address] };
            (restore_server(&state, &reaching(servers), &named), Some(named))
        }
    };
    if args.printing.json {
        print_json(&report)?;
    } else {
        print_text(&text(&report, &state, what.as_deref()))?;
    }
    if report.is_settled() {
        return Ok(());
    }
    Err(ExitError::NotHere(unsettled(&report)))
}

/// What is left to do.
fn unsettled(report: &RestoreReport) -> String {
    if let Some(error) = &report.server_error {
        return format!("the server does not answer, so its settings are not restored: {error}");
    }
    let things = report.journals.iter().flat_map(|journal| &journal.things);
    let is_of_a_server = things.into_iter().any(|thing| !thing.by_hand.is_empty());
    let fix = if is_of_a_server {
        "make sure that the server answers and that the user may set its variables, and run \
         iostrata restore --target mysql://user:password@host:port, or run the statements by hand"
    } else {
        "free it and run iostrata restore again"
    };
    format!(
        "not everything could be put back; what is listed as not undone or not removed stays in \
         the journal: {fix}"
    )
}

/// The machine, and servers by the user's usual places.
pub fn system() -> System {
    reaching(MySqlServers::default())
}

fn reaching(servers: MySqlServers) -> System {
    System::new().with_servers(servers)
}

/// The address of the target, which may hold a password and is not repeated.
fn address(target: &str, credentials: &Credentials) -> Result<ServerAddress, ExitError> {
    if !target.starts_with("mysql://") {
        return Err(ExitError::Usage(
            "--target: not a target; write mysql://user@host:port/db or engine:DIR".to_owned(),
        ));
    }
    server_address(target, credentials, "--target: ")
}

/// One line per thing; `what` is the one requested server.
fn text(report: &RestoreReport, state: &StateDir, what: Option<&str>) -> String {
    if report.journals.is_empty() && report.server_error.is_none() {
        let of = what.map(|server| format!(" of {server}")).unwrap_or_default();
        let others = report.other_servers.iter();
        let others =
            others.map(|other| format!("\nStill changed, settings of another server: {other}."));
        return format!(
            "Nothing{of} is left to put back (looked in {}).{}\n",
            state.path().display(),
            others.collect::<String>(),
        );
    }
    report.journals.iter().map(journal_text).collect()
}

/// A thing and, where a person can do what could not be done, how.
fn thing_text(thing: &Thing) -> String {
    let by_hand = thing.by_hand.iter().map(|statement| format!("\n  {statement}"));
    let by_hand: String = by_hand.collect();
    match by_hand.is_empty() {
        true => thing.to_string(),
        false => format!("{thing}\nby hand, if it was not restarted since:{by_hand}"),
    }
}

fn journal_text(report: &JournalReport) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    let path = report.journal.display();
    let is_empty = report.things.is_empty() && report.files.is_empty();
    let owner = report
        .owner
        .as_ref()
        .map_or_else(|| "an unknown process".to_owned(), |owner| format!("process {}", owner.pid));
    match report.state {
        JournalState::InUse => line(&format!("in use by {owner}, left alone: {path}")),
        JournalState::Settled if is_empty => {
            line(&format!("nothing left of {owner}"));
        }
        _ => {}
    }
    report.things.iter().for_each(|thing| line(&thing_text(thing)));
    report.left.iter().for_each(|left| line(&left.to_string()));
    report.files.iter().for_each(|file| line(&file.to_string()));
    if report.damaged_lines > 0 {
        line(&format!(
            "{} lines of {path} cannot be read by this version; check them by hand",
            report.damaged_lines
        ));
    }
    if let Some(error) = &report.error {
        line(error);
    }
    text
}

/// Writes down the measuring files of this process from now on, so that a killed one's are found.
pub fn record_files() {
    let on_failure = |error: &dyn std::fmt::Display| {
        anstream::eprintln!(
            "{error}; should this run be killed, remove its files by hand (or set IOSTRATA_STATE \
             to a directory that can be written)"
        );
    };
    let state = StateDir::of_user();
    let record = MeasuringFiles::new(state, Box::new(move |error| on_failure(error)));
    iostrata_io::record_files(Box::new(record));
}

/// What a command that makes files does first: removes those that killed runs left.
pub fn clear_files(quiet: bool) {
    let report = remove_left_files(&StateDir::of_user(), &System::new());
    for journal in report.journals.iter().filter(|journal| !quiet && !journal.files.is_empty()) {
        let (kept, gone): (Vec<LeftFile>, Vec<LeftFile>) =
            journal.files.iter().cloned().partition(|file| file.error.is_some());
        let who = killed(journal.owner.as_ref().map(|owner| owner.pid));
        if !gone.is_empty() {
            anstream::eprintln!("Removed {}, left by a run that was {who}.", named_files(&gone));
        }
        kept.iter().for_each(|file| anstream::eprintln!("{file}"));
    }
}

/// What every other command prints first when a killed run left changes or files behind.
pub fn note_leftovers(quiet: bool) {
    if quiet {
        return;
    }
    for leftover in leftovers(&StateDir::of_user()) {
        notes(&leftover).iter().for_each(|note| anstream::eprintln!("{note}"));
    }
}

fn notes(leftover: &Leftover) -> Vec<String> {
    let who = killed(leftover.owner.as_ref().map(|owner| owner.pid));
    let mut notes = Vec::new();
    if !leftover.files.is_empty() {
        let files = named_files(&leftover.files);
        let them = if leftover.files.len() == 1 { "it" } else { "them" };
        notes
            .push(format!("A run that was {who} left {files}. To remove {them}: iostrata restore"));
    }
    if !leftover.changes.is_empty() || leftover.files.is_empty() {
        let changes = &leftover.changes;
        let mut named = changes.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        if changes.len() > NAMED {
            named = format!("{named}; and {} more", changes.len() - NAMED);
        }
        let named = if named.is_empty() { leftover.path.display().to_string() } else { named };
        notes.push(format!("A run that was {who} left the system changed: {named}. To put it back: iostrata restore"));
    }
    notes
}

fn killed(pid: Option<u32>) -> String {
    pid.map_or_else(|| "killed".to_owned(), |pid| format!("killed (process {pid})"))
}

/// `1.1 GiB in 3 measuring files in /data`.
fn named_files(files: &[LeftFile]) -> String {
    let size = units::bytes(files.iter().map(|file| file.bytes).sum::<u64>() as f64);
    if let [file] = files {
        return format!("the measuring file {} ({size})", file.path.display());
    }
    let mut dirs: Vec<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
    dirs.sort_unstable();
    dirs.dedup();
    let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    format!("{} measuring files in {} ({size})", files.len(), dirs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_names_the_first_changes_and_the_way_out() {
        let changes = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let mut leftover = Leftover { path: "/s/j".into(), owner: None, changes, files: vec![] };
        let said = "A run that was killed left the system changed: a; b; c; and 2 more. To put it \
                    back: iostrata restore";
        assert_eq!(notes(&leftover), [said]);
        let file = |name: &str| LeftFile { path: name.into(), bytes: 1 << 20, error: None };
        leftover.files = vec![file("/a/1"), file("/a/2"), file("/b/1")];
        leftover.changes.clear();
        let said = "A run that was killed left 3 measuring files in /a, /b (3 MiB). To remove \
                    them: iostrata restore";
        assert_eq!(notes(&leftover), [said]);
    }
}
