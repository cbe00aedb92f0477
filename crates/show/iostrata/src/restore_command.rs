//! `iostrata restore`: puts back what a killed run left changed; and the note that says so.

use iostrata_change::{
    JournalReport, JournalState, Leftover, RestoreReport, StateDir, System, leftovers, restore,
};

use crate::args::RestoreArgs;
use crate::display::{Display, print_json, print_text};
use crate::ending::Ending;

/// Changes named in the note; more are counted.
const NAMED: usize = 3;

/// Runs the command.
///
/// # Errors
/// When something could not be put back: it is listed and stays in the journal.
pub fn run(args: &RestoreArgs) -> Result<(), Ending> {
    let display = Display::new(args.printing.quiet);
    if let Some(target) = &args.target {
        display.note(&format!(
            "{target}: no settings of servers are changed yet, so there are none to put back"
        ));
    }
    let state = StateDir::of_user();
    let report = restore(&state, &System::new());
    if args.printing.json {
        print_json(&report)?;
    } else {
        print_text(&text(&report, &state))?;
    }
    if report.is_settled() {
        return Ok(());
    }
    Err(Ending::NotHere(
        "not everything could be put back; what is listed as not undone stays in the journal: free \
         it and run iostrata restore again"
            .to_owned(),
    ))
}

/// One line per thing.
fn text(report: &RestoreReport, state: &StateDir) -> String {
    if report.journals.is_empty() {
        return format!("Nothing is left to put back (looked in {}).\n", state.path().display());
    }
    report.journals.iter().map(journal_text).collect()
}

fn journal_text(report: &JournalReport) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    let path = report.journal.display();
    let owner = report
        .owner
        .as_ref()
        .map_or_else(|| "an unknown process".to_owned(), |owner| format!("process {}", owner.pid));
    match report.state {
        JournalState::InUse => line(&format!("in use by {owner}, left alone: {path}")),
        JournalState::Settled if report.things.is_empty() => {
            line(&format!("nothing left of {owner}"));
        }
        _ => {}
    }
    report.things.iter().for_each(|thing| line(&thing.to_string()));
    report.left.iter().for_each(|left| line(&left.to_string()));
    if report.damaged_lines > 0 {
        line(&format!(
            "{} lines of {path} cannot be read by this version; look at them by hand",
            report.damaged_lines
        ));
    }
    if let Some(error) = &report.error {
        line(error);
    }
    text
}

/// What every other command says first when a killed run left changes behind.
pub fn note_leftovers(quiet: bool) {
    if quiet {
        return;
    }
    for leftover in leftovers(&StateDir::of_user()) {
        anstream::eprintln!("{}", note(&leftover));
    }
}

fn note(leftover: &Leftover) -> String {
    let who = leftover.owner.as_ref().map_or_else(
        || "A run that was killed".to_owned(),
        |owner| format!("A run that was killed (process {})", owner.pid),
    );
    let changes = &leftover.changes;
    let mut named = changes.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if changes.len() > NAMED {
        named = format!("{named}; and {} more", changes.len() - NAMED);
    }
    let named = if named.is_empty() { leftover.path.display().to_string() } else { named };
    format!("{who} left the system changed: {named}. To put it back: iostrata restore")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_names_the_first_changes_and_the_way_out() {
        let changes = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let leftover = Leftover { path: "/s/j".into(), owner: None, changes };
        let note = note(&leftover);
        assert!(
            note.contains("a; b; c; and 2 more") && note.contains("iostrata restore"),
            "{note}"
        );
    }
}
