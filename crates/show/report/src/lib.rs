//! A run directory as HTML, Markdown and terminal text.
//!
//! Purpose: show what a run measured. Invariants: a view computes nothing, it only formats what the
//! run directory holds; text from outside is escaped wherever it lands; the HTML is one file that
//! asks no network for anything.
//! It does not measure, does not diagnose, and writes no file: callers do with the text what they
//! want.

mod chart;
mod html;
mod rows;
mod simulate;
mod study;
mod text;
mod view;
mod words;

pub use view::RunView;

use iostrata_run::host::ProfileDiff;
use iostrata_run::{RunReader, StudyPoint};

/// A run in the forms that are files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The report, one HTML file.
    pub html: String,
    /// The same in Markdown.
    pub markdown: String,
}

/// Renders a run as it was kept, complete or not.
pub fn render(run: &RunReader) -> Rendered {
    let view = RunView::of(run);
    Rendered { html: html(&view), markdown: markdown(&view) }
}

/// The report: one offline HTML file with interactive charts, a few megabytes of script included.
pub fn html(view: &RunView<'_>) -> String {
    let result = view.study().map(study::shared_once);
    html::page(&RunView { result: result.as_ref().or(view.result), ..*view })
}

/// The report in Markdown, without charts.
pub fn markdown(view: &RunView<'_>) -> String {
    text::markdown::document(view)
}

/// The short verdict for a terminal, at most `width` columns wide.
///
/// With `colour` it carries ANSI styles and block characters; without, it is plain ASCII but for
/// what names and paths bring with them. Control characters in names are replaced.
pub fn terminal(view: &RunView<'_>, width: usize, colour: bool) -> String {
    let result = view.study().map(study::shared_once);
    let view = RunView { result: result.as_ref().or(view.result), ..*view };
    text::terminal::verdict(&view, width, colour)
}

/// Two points to be shown beside each other.
#[derive(Clone, Copy, Debug)]
pub struct PointDiff<'a> {
    /// The first, with the name that it goes by.
    pub a: (&'a str, &'a StudyPoint),
    /// The second.
    pub b: (&'a str, &'a StudyPoint),
    /// The second's profile against the first's; absent where one of them has none.
    pub profile: Option<&'a ProfileDiff>,
}

/// Two points beside each other for a terminal, at most `width` columns wide; colour and control
/// characters as in [`terminal`].
pub fn point_diff_terminal(diff: &PointDiff<'_>, width: usize, colour: bool) -> String {
    text::diff::terminal::document(diff, width, colour)
}

/// Two points beside each other in Markdown.
pub fn point_diff_markdown(diff: &PointDiff<'_>) -> String {
    text::diff::markdown::document(diff)
}
