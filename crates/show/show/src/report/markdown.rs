//! A report in Markdown: what the page shows, without charts.
//!
//! Invariant: text from outside cannot make markup: it is escaped, or stands in a code span without
//! backticks.

use crate::report::cell::{Cell, Span, Text, What};
use crate::report::document::{Block, Blocks, Entry, On, Report, Row, Style, Table};
use crate::report::view::Head;
use crate::report::words;

/// The whole document.
pub(crate) fn document(head: &Head, report: &Report) -> String {
    let mut out = format!("# {}", escaped(&head.command));
    if let Some(study) = &head.study {
        out.push_str(&format!(" {}", escaped(study)));
    } else if let Some(place) = &head.place {
        out.push_str(&format!(" of `{}`", code(place)));
    }
    out.push('\n');
    for (n, sentence) in report.headline.iter().enumerate() {
        let strong = if n == 0 { "**" } else { "" };
        out.push_str(&format!("\n{strong}{}{strong}\n", escaped(sentence)));
    }
    if let Some(question) = &report.question {
        out.push_str(&format!("\n{}\n", text(question)));
    }
    for section in &report.sections {
        let body = blocks(&section.body);
        if !body.is_empty() {
            out.push_str(&format!("\n## {}\n{body}", escaped(&section.title)));
        }
    }
    if !report.summary.0.is_empty() {
        out.push_str(&format!("\n{}\n", text(&report.summary)));
    }
    for note in &head.notes {
        out.push_str(&format!("\nNote: {}\n", escaped(note)));
    }
    out.push_str(&format!("\n---\n{} `{}`\n", escaped(&head.made), code(&head.command_line)));
    out
}

/// Blocks without a title of their own, as two points next to each other have.
pub(crate) fn blocks(all: &Blocks) -> String {
    all.on(On::MARKDOWN).map(block).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(title) => format!("\n### {}\n", text(title)),
        Block::Text(Style::Lead(_), sentence) => format!("\n**{}**\n", text(sentence)),
        Block::Text(_, sentence) => format!("\n{}\n", text(sentence)),
        Block::List(all) => list(all.iter().map(text)),
        Block::Facts(all, _) => {
            list(all.iter().map(|(name, what)| format!("{}: {}", text(name), text(what))))
        }
        Block::Named(all, _) => {
            list(all.iter().map(|(name, what)| format!("{}: {}", escaped(name), escaped(what))))
        }
        Block::Verdicts(all) => {
            list(all.iter().map(|one| format!("`{}`: {}", words::verdict(*one), one.explain())))
        }
        Block::Table(one) => table(one),
        Block::Entries(all) => format!("\n{}", all.iter().map(entry).collect::<String>()),
        Block::Folded(_, body) => blocks(body),
        Block::Chart(_)
        | Block::Panels(_)
        | Block::Choice(..)
        | Block::Snippet(..)
        | Block::Points(_) => String::new(),
    }
}

fn list(all: impl Iterator<Item = String>) -> String {
    let lines: String = all.map(|line| format!("- {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn entry(one: &Entry) -> String {
    let words = one.text.iter().map(|line| format!(" {}", escaped(line))).collect::<String>();
    let mut out = format!("- {} ({}){words}\n", text(&one.title), text(&one.about).trim());
    for (name, what) in &one.facts {
        out.push_str(&format!("  - {}: {}\n", text(name), text(what)));
    }
    out
}

fn text(text: &Text) -> String {
    text_with(text, code)
}

fn text_with(text: &Text, code: impl Fn(&str) -> String) -> String {
    let span = |span: &Span| match span {
        Span::Plain(text) | Span::Muted(text) | Span::Link(_, text) => escaped(text),
        Span::Strong(text) => format!("**{}**", escaped(text)),
        Span::Code(text) => format!("`{}`", code(text)),
        Span::Tag(_, text) => format!("{}, ", escaped(text)),
        Span::Layer(layer) => layer.title().to_owned(),
        Span::Verdicts(all) => {
            all.iter().map(|one| format!("`{}` ", words::verdict(one))).collect()
        }
    };
    text.0.iter().map(span).collect::<String>().trim_end_matches(", ").to_owned()
}

fn table(table: &Table) -> String {
    let columns = table.columns_on(On::MARKDOWN);
    let heads = columns.iter().map(|(_, column)| match column.group.as_str() {
        "" => escaped(&column.head),
        group => format!("{}: {}", escaped(group), escaped(&column.head)),
    });
    let heads: Vec<String> = heads.collect();
    let mut out = format!("\n| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    let line = |row: &Row| {
        let cells: Vec<String> = columns.iter().map(|(at, _)| cell(&row.cells[*at])).collect();
        let group = row.group.as_ref().map(|group| format!("| **{}** |\n", escaped(group)));
        format!("{}| {} |\n", group.unwrap_or_default(), cells.join(" | "))
    };
    out.extend(table.rows.iter().map(line));
    out
}

fn cell(cell: &Cell) -> String {
    let Some(number) = cell.number() else {
        return match &cell.what {
            // A code span keeps a bar as it is; the row of a table would end its cell there.
            What::Text(found) => text_with(found, |span| code(span).replace('|', "\\|")),
            What::Verdicts(all) => words::verdicts(all),
            What::Layer(layer) => layer.title().to_owned(),
            _ => String::new(),
        };
    };
    let mut out = escaped(&number.shown.text);
    out.extend(number.shown.why.map(|why| format!(": {}", escaped(&why))));
    out.extend(number.shown.half.map(|half| format!(" {half}")));
    out.extend(number.range.map(|range| format!(" {}", escaped(&range))));
    if let What::Figure(_, _, n, _) | What::Change(_, _, n, _) = cell.what {
        out.push_str(&format!(" (n = {n})"));
    }
    out
}

/// Text from outside in running text or in a table.
pub(crate) fn escaped(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_word = |at: Option<usize>| {
        at.and_then(|at| letters.get(at)).is_some_and(|letter| letter.is_alphanumeric())
    };
    let mut out = String::with_capacity(text.len());
    for (at, &letter) in letters.iter().enumerate() {
        match letter {
            '_' if is_word(at.checked_sub(1)) && is_word(Some(at + 1)) => out.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// Text from outside in a code span.
fn code(text: &str) -> String {
    let plain = |letter: char| match letter {
        '`' => '\'',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_makes_no_markup() {
        assert_eq!(escaped("a_b *c* <d>|\n[e](f)"), "a_b \\*c\\* \\<d\\>\\| \\[e\\](f)");
        assert_eq!(escaped("_a_"), "\\_a\\_");
        assert_eq!(code("a`b|c\n"), "a'b|c ");
        let cell_of = |code: &str| cell(&crate::report::cell::code(code));
        assert_eq!(cell_of("a`b|c\n"), "`a'b\\|c `");
    }
}
