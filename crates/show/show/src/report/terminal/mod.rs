//! A report for a terminal: the verdict and the short tables, at most as wide as asked for.

mod table;
mod text;

use crate::report::cell::{Span, Text, Tone};
use crate::report::document::{Block, Blocks, Entry, On, Report, Style};
use crate::report::head::Head;
use crate::report::words;

use table::plain;
use text::{Look, cut};

pub(crate) use text::{Terminal, length, wrapped_to};

/// Lines of a short section.
const SHORT: usize = 9;
/// Entries that are shown at most.
const ENTRIES: usize = 6;

/// The whole, with a newline at its end.
pub(crate) fn document(head: &Head, report: &Report, terminal: &Terminal) -> String {
    let subject = terminal.width - head.command.len() - 1;
    let mut lines = vec![format!(
        "{} {}",
        terminal.styled(Look::Bold, &head.command),
        terminal.styled(Look::Dim, &cut(&terminal.clean(&head.subject()), subject))
    )];
    lines.push(String::new());
    for (n, sentence) in report.headline.iter().enumerate() {
        let look = if n == 0 { Look::Bold } else { Look::Plain };
        lines.extend(
            terminal.wrapped(sentence, 0, 0).iter().map(|line| terminal.styled(look, line)),
        );
    }
    let mut is_short = false;
    for section in &report.sections {
        let body = blocks(&section.body, terminal);
        if !body.is_empty() {
            // Short sections stand close together.
            if !is_short || body.len() > SHORT {
                lines.push(String::new());
            }
            is_short = body.len() <= SHORT;
            lines.push(terminal.styled(Look::Bold, &terminal.clean(&section.title)));
            lines.extend(body);
        }
    }
    if !is_short {
        lines.push(String::new());
    }
    lines.extend(sentence(&report.summary, Look::Dim, terminal));
    for note in &head.notes {
        let wrapped = terminal.wrapped(note, 0, 0);
        lines.extend(wrapped.iter().map(|line| terminal.styled(Look::Warn, line)));
    }
    lines.extend(report.kept.iter().map(|kept| terminal.clean(&plain(kept))));
    lines.join("\n") + "\n"
}

fn sentence(text: &Text, look: Look, terminal: &Terminal) -> Vec<String> {
    let lines = terminal.wrapped(&plain(text), 0, 0);
    lines.iter().map(|line| terminal.styled(look, line)).collect()
}

/// The lines of blocks.
pub(crate) fn blocks(all: &Blocks, terminal: &Terminal) -> Vec<String> {
    all.on(On::TERMINAL).flat_map(|one| block(one, terminal)).collect()
}

fn block(block: &Block, terminal: &Terminal) -> Vec<String> {
    let hanging = |text: &str| terminal.wrapped(text, 2, 2);
    let named = |name: &str, what: &str| hanging(&format!("{name}: {what}"));
    let most = |mut lines: Vec<Vec<String>>, most: usize| {
        let more = lines.len().saturating_sub(most);
        lines.truncate(most);
        if more > 0 {
            lines.push(vec![
                terminal.styled(Look::Dim, &format!("  and {more} more in the report")),
            ]);
        }
        lines.concat()
    };
    match block {
        Block::Title(title) => vec![terminal.styled(Look::Bold, &terminal.clean(&plain(title)))],
        Block::Text(style, text) => sentence(text, look(*style), terminal),
        Block::List(all) => all.iter().flat_map(|one| hanging(&plain(one))).collect(),
        Block::Facts(all, n) => {
            most(all.iter().map(|(name, what)| named(&plain(name), &plain(what))).collect(), *n)
        }
        Block::Named(all, n) => {
            most(all.iter().map(|(name, what)| named(name, what)).collect(), *n)
        }
        Block::Verdicts(all) => all
            .iter()
            .flat_map(|one| {
                let (word, name) = (words::verdict_word(*one), words::verdict(*one));
                hanging(&format!("*{word} ({name}): {}", one.explain()))
            })
            .map(|line| terminal.styled(Look::Warn, &line))
            .collect(),
        Block::Table(one) => table::lines(one, terminal),
        Block::Entries(all) => most(all.iter().map(|one| entry(one, terminal)).collect(), ENTRIES),
        Block::Folded(_, body) => blocks(body, terminal),
        Block::Chart(_)
        | Block::Panels(_)
        | Block::Choice(..)
        | Block::Snippet(..)
        | Block::Points(_) => Vec::new(),
    }
}

fn look(style: Style) -> Look {
    match style {
        Style::Lead(Tone::Plain) => Look::Bold,
        Style::Lead(tone) | Style::Note(tone) if tone != Tone::Plain => tone.into(),
        Style::Say | Style::Note(_) => Look::Dim,
        Style::Lead(_) | Style::Plain => Look::Plain,
    }
}

/// What it is in one line, where that is possible, with what it is about.
fn entry(one: &Entry, terminal: &Terminal) -> Vec<String> {
    // Links lead to what only the page has.
    let about = one.about.0.iter().filter(|span| !matches!(span, Span::Link(..)));
    let (title, about) = (plain(&one.title), plain(&Text(about.cloned().collect())));
    if title.len() + about.len() + 6 <= terminal.width {
        let about = terminal.styled(Look::Dim, &format!("({})", terminal.clean(&about)));
        return vec![format!("  {}  {about}", terminal.clean(&title))];
    }
    let mut lines = terminal.wrapped(&title, 2, 2);
    let about = terminal.wrapped(&about, 4, 0);
    lines.extend(about.iter().map(|line| terminal.styled(Look::Dim, line)));
    lines
}
