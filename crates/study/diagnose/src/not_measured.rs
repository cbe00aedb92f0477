//! What a probe did not measure, and why: nothing may be concluded about that.

use iostrata_plan::Layer;
use iostrata_run::{ProbeDocument, Unavailable};

/// Parts that are named one by one.
const NAMED_MAX: usize = 3;

/// The sentences of a document without any figure of the storage; `None` where there is one.
pub(crate) fn nothing_measured(document: &ProbeDocument) -> Option<Vec<String>> {
    if document.rungs.iter().any(|rung| rung.layer != Layer::Host) {
        return None;
    }
    let mut sentences = vec!["Nothing was measured.".to_owned()];
    if let Some(why) = document.unavailable.iter().rev().find(|one| one.was_planned()) {
        sentences.push(format!("{}.", upper_first(&why.why)));
    }
    if !document.interrupted {
        sentences.push("Nothing can be said about this storage or what to change.".to_owned());
    }
    Some(sentences)
}

/// The parts that were planned and left out, or failed, in a sentence; `None` where there are none.
pub(crate) fn not_measured(document: &ProbeDocument) -> Option<String> {
    let missing: Vec<&Unavailable> =
        document.unavailable.iter().filter(|one| one.was_planned()).collect();
    let last = missing.last()?;
    let mut names: Vec<&str> = missing.iter().map(|one| one.what.as_str()).collect();
    names.dedup();
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED_MAX);
    Some(format!("Not measured: {}{more} ({}).", names.join("; "), last.why))
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}
