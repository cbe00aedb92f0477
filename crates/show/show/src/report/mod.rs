//! A run directory as HTML, Markdown, terminal text and, for some, a picture.
//!
//! Purpose: show what a run measured. A builder of its kind makes a report of it as data ([`kind`]:
//! sections, tables, charts, sentences), and three renderers show any report.
//! Invariants: a view computes nothing, it only formats what the run directory holds; text from
//! outside is escaped wherever it lands; the HTML is one file that loads nothing from the network.
//! It does not measure, does not diagnose, and writes no file: callers do with the text what they
//! want.

mod cell;
mod chart;
mod colour;
mod document;
mod html;
mod kind;
mod markdown;
mod svg;
mod terminal;
mod view;
mod words;

pub use terminal::wrapped;
pub use view::RunView;

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use document::On;
use iostrata_run::host::ProfileDiff;
use iostrata_run::{RunReader, RunResult, StudyPoint};
use terminal::Terminal;

/// A run in the forms that are files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedReport {
    /// The report, one HTML file.
    pub html: String,
    /// The same in Markdown.
    pub markdown: String,
}

/// Renders a run as it was kept, complete or not.
pub fn render(run: &RunReader) -> RenderedReport {
    let view = RunView::of(run);
    RenderedReport { html: html(&view), markdown: markdown(&view) }
}

/// The report: one offline HTML file with its charts.
pub fn html(view: &RunView<'_>) -> String {
    let (head, report) = kind::report(view, On::PAGE);
    html::page(&head, &report)
}

/// A run whose charts stand in no file of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSheet {
    /// The command that made it.
    pub command: String,
}

impl Display for NoSheet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let command = &self.command;
        write!(
            f,
            "a run of `{command}` has no picture of its own (its charts are in report.html); "
        )?;
        write!(f, "--format svg draws finished runs of `iostrata study`, ")?;
        write!(f, "`iostrata simulate flush`, `iostrata watch` and `iostrata tune`")
    }
}

impl Error for NoSheet {}

/// The charts of a run as one SVG file, for documents to embed.
///
/// # Errors
/// When the run is of a kind without such a picture, or ended before there was anything to draw.
pub fn svg(view: &RunView<'_>) -> Result<String, NoSheet> {
    let none = || NoSheet { command: view.head(None, None).command };
    let drawn = kind::picture(view).map(|picture| svg::picture(&picture));
    drawn.or_else(|| kind::sheet(view).as_ref().map(svg::sheet)).ok_or_else(none)
}

/// Recordings of `watch` and `tune` as one SVG file, each with its name: the throughput of two next
/// to each other, the next two below.
///
/// # Errors
/// For the first run that is no finished recording, or when none has transactions.
pub fn svg_of_recordings(runs: &[(&str, RunView<'_>)]) -> Result<String, NoSheet> {
    let none = |view: &RunView<'_>| NoSheet { command: view.head(None, None).command };
    let mut recordings = Vec::new();
    for (name, view) in runs {
        match view.result {
            Some(RunResult::Watch(watched)) => recordings.push((*name, &**watched)),
            _ => return Err(none(view)),
        }
    }
    let command = || runs.first().map_or_else(String::new, |(_, view)| none(view).command);
    let sheet = kind::sheet_of_recordings(&recordings);
    sheet.as_ref().map(svg::sheet).ok_or_else(|| NoSheet { command: command() })
}

/// The report in Markdown, without charts.
pub fn markdown(view: &RunView<'_>) -> String {
    let (head, report) = kind::report(view, On::MARKDOWN);
    markdown::document(&head, &report)
}

/// The short verdict for a terminal, at most `width` columns wide.
///
/// With `colour` it carries ANSI styles; without, it is plain ASCII but for what names and paths
/// bring with them. Control characters in names are replaced.
pub fn terminal(view: &RunView<'_>, width: usize, colour: bool) -> String {
    let (head, report) = kind::report(view, On::TERMINAL);
    terminal::document(&head, &report, &Terminal::new(width, colour))
}

/// Two points to be shown next to each other.
#[derive(Clone, Copy, Debug)]
pub struct PointDiff<'a> {
    /// The first, with the name that it goes by.
    pub a: (&'a str, &'a StudyPoint),
    /// The second.
    pub b: (&'a str, &'a StudyPoint),
    /// The second's profile against the first's; absent where one of them has none.
    pub profile: Option<&'a ProfileDiff>,
}

/// Two points next to each other for a terminal, at most `width` columns wide; colour and control
/// characters as in [`terminal`].
pub fn point_diff_terminal(diff: &PointDiff<'_>, width: usize, colour: bool) -> String {
    let (_, body) = kind::diff(diff);
    terminal::blocks(&body, &Terminal::new(width, colour)).join("\n") + "\n"
}

/// Two points next to each other in Markdown.
pub fn point_diff_markdown(diff: &PointDiff<'_>) -> String {
    let (title, body) = kind::diff(diff);
    format!("# {}\n{}", markdown::escaped(&title), markdown::blocks(&body))
}
