//! A report for a terminal: the verdict and the short tables, at most as wide as requested.
//!
//! Invariants: without colour there is no escape sequence and no character of our own outside
//! ASCII; control characters of names never reach the terminal. No table is wider than the
//! terminal, and nothing of it is left out but columns that it can spare and rows beyond its
//! maximum.
//!
//! A table stands as it is; else closer together; else with texts on several lines; else with the
//! last texts below their rows; else with all figures below their names, each behind the head of
//! its column.

use anstyle::AnsiColor;
use iostrata_plan::Layer;

use super::cell::{Cell, Span, Text, Tone, What};
use super::document::{Block, Blocks, Column, Entry, On, Report, Row, Style, Table};
use super::view::Head;
use super::words;

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
        Block::Table(one) => lines(one, terminal),
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

/// The terminal that is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Columns.
    pub(crate) width: usize,
    /// Whether styles may be used.
    pub(crate) colour: bool,
}

/// Fewest columns that are laid out for; a narrower terminal wraps by itself.
const NARROWEST: usize = 60;

/// How text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Bold,
    Dim,
    Good,
    Warn,
    Layer(Layer),
}

impl From<Tone> for Look {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Good => Self::Good,
            Tone::Warn => Self::Warn,
            Tone::Dim => Self::Dim,
        }
    }
}

impl Terminal {
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self { width: width.clamp(NARROWEST, 160), colour }
    }

    pub(crate) fn styled(&self, look: Look, text: &str) -> String {
        let coloured = |colour: AnsiColor| anstyle::Style::new().fg_color(Some(colour.into()));
        let style = match look {
            Look::Plain => return text.to_owned(),
            Look::Bold => anstyle::Style::new().bold(),
            Look::Dim => anstyle::Style::new().dimmed(),
            Look::Good => coloured(AnsiColor::Green).bold(),
            Look::Warn => coloured(AnsiColor::Yellow),
            Look::Layer(layer) => coloured(match layer {
                Layer::Host => AnsiColor::White,
                Layer::Device => AnsiColor::Green,
                Layer::Block | Layer::FileApi => AnsiColor::Yellow,
                Layer::Limit | Layer::Transactions => AnsiColor::Magenta,
                Layer::Filesystem => AnsiColor::Blue,
                Layer::Engine => AnsiColor::Red,
            }),
        };
        if self.colour && !text.trim().is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Text without characters that steer a terminal or turn the direction of reading; without
    /// colour our own signs become ASCII, too.
    pub(crate) fn clean(&self, text: &str) -> String {
        const TURNS: [std::ops::RangeInclusive<char>; 3] =
            ['\u{200e}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
        let steers = |c: char| c.is_control() || TURNS.iter().any(|range| range.contains(&c));
        let mut out = String::with_capacity(text.len());
        for letter in text.chars() {
            match letter {
                letter if letter.is_whitespace() => out.push(' '),
                letter if steers(letter) => out.push('?'),
                '\u{b1}' if !self.colour => out.push_str("+-"),
                '\u{2192}' if !self.colour => out.push_str("to"),
                '\u{b7}' if !self.colour => out.push('-'),
                letter => out.push(letter),
            }
        }
        out
    }

    /// Text as lines of at most the width, the first after `indent` spaces, the others after
    /// `hang` more.
    pub(crate) fn wrapped(&self, text: &str, indent: usize, hang: usize) -> Vec<String> {
        let most = self.width.saturating_sub(indent + hang).max(20);
        let text = self.clean(text);
        let lines = wrapped_to(&text, most + hang, most).into_iter().enumerate();
        let spaces = |n: usize| " ".repeat(if n == 0 { indent } else { indent + hang });
        lines.map(|(n, line)| spaces(n) + &line).collect()
    }
}

/// Words as lines, the first and the others of at most so many columns; longer words lose their
/// middle, because names that begin alike differ at their ends.
pub(crate) fn wrapped_to(text: &str, first: usize, others: usize) -> Vec<String> {
    let words = with_percents(text.split_whitespace());
    let least = first.min(others);
    filled(words.iter().map(|word| cut_middle(word, least)), first, others)
}

/// Words as lines of at most so many columns; a longer word has a line of its own.
pub fn wrapped<S: AsRef<str>>(words: impl IntoIterator<Item = S>, width: usize) -> Vec<String> {
    filled(with_percents(words), width, width)
}

/// Words, of which a number and its percent are one, so that they stay in one line.
fn with_percents<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        let word = word.as_ref();
        match joined.last_mut() {
            Some(number) if word.starts_with('%') => number.extend([" ", word]),
            _ => joined.push(word.to_owned()),
        }
    }
    joined
}

fn filled<S: AsRef<str>>(
    words: impl IntoIterator<Item = S>,
    first: usize,
    others: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let (word, most) = (word.as_ref(), if lines.len() > 1 { others } else { first });
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
}

/// Text at the left or right of a width.
pub(crate) fn aligned(text: &str, width: usize, right: bool) -> String {
    let filled = " ".repeat(width.saturating_sub(length(text)));
    if right { filled + text } else { text.to_owned() + &filled }
}

/// Text cut to a width, with two dots where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(2)).collect::<String>() + ".."
}

/// Text cut to a width in its middle.
fn cut_middle(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let end = width.saturating_sub(2) / 2;
    let start = width.saturating_sub(2 + end);
    letters[..start].iter().chain(&['.', '.']).chain(&letters[letters.len() - end..]).collect()
}

/// Columns before a row.
const INDENT: usize = 2;
/// Fewest columns of a text that is broken into lines.
const TEXT_MIN: usize = 14;
/// A longer word than that is cut where a table is too wide for it.
const WORD_MAX: usize = 40;

/// The lines of a table.
fn lines(table: &Table, terminal: &Terminal) -> Vec<String> {
    let columns = table.columns_on(On::TERMINAL);
    let shown = &table.rows[..table.rows.len().min(table.most)];
    let mut grid = Grid::of(&columns, shown, terminal);
    let below = grid.fit(terminal.width);
    let mut out = grid.heads(terminal);
    for (at, row) in shown.iter().enumerate() {
        out.extend(
            row.group.iter().map(|group| terminal.styled(Look::Bold, &terminal.clean(group))),
        );
        if grid.is_stacked {
            out.extend(grid.stacked(at, &below, terminal));
        } else {
            out.extend(grid.row(at, row, terminal));
            out.extend(beside(at, &below, terminal));
        }
        let notes = row.below.iter().flat_map(|note| terminal.wrapped(note, 2 * INDENT, 0));
        out.extend(notes.map(|line| terminal.styled(Look::Dim, &line)));
    }
    if table.rows.len() > shown.len() {
        let more = format!("  and {} more in the report", table.rows.len() - shown.len());
        out.push(terminal.styled(Look::Dim, &more));
    }
    out
}

/// The texts of a row for which its line has no room.
fn beside(at: usize, below: &[Strip], terminal: &Terminal) -> Vec<String> {
    let said = below.iter().map(|strip| strip.cells[at].as_str()).filter(|cell| !cell.is_empty());
    let said = said.collect::<Vec<_>>().join("; ");
    let starred = below.iter().any(|strip| strip.cells[at].starts_with('*'));
    let look = if starred { Look::Warn } else { Look::Dim };
    let lines = terminal.wrapped(&said, 2 * INDENT, 0);
    lines.iter().map(|line| terminal.styled(look, line)).collect()
}

/// A column of text as it is laid out: half an interval is one of its own.
struct Strip {
    head: String,
    group: String,
    is_number: bool,
    /// Whether it stands one space behind the one before it, as half an interval does.
    is_close: bool,
    is_spare: bool,
    cells: Vec<String>,
    looks: Vec<Look>,
    width: usize,
}

impl Strip {
    fn new(column: &Column, cells: Vec<(String, Look)>) -> Self {
        let (cells, looks): (Vec<String>, Vec<Look>) = cells.into_iter().unzip();
        let width = cells.iter().chain([&column.head]).map(|cell| length(cell)).max().unwrap_or(0);
        let (head, group) = (column.head.clone(), column.group.clone());
        Self {
            head,
            group,
            is_number: column.number,
            is_close: false,
            is_spare: column.is_spare,
            cells,
            looks,
            width,
        }
    }

    /// As narrow as it may become: names of settings stay whole.
    fn least(&self) -> usize {
        let words = self.cells.iter().flat_map(|cell| cell.split_whitespace()).map(length);
        words.filter(|word| *word <= WORD_MAX).fold(TEXT_MIN, usize::max)
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }
}

struct Grid {
    strips: Vec<Strip>,
    gap: usize,
    is_stacked: bool,
}

impl Grid {
    fn of(columns: &[(usize, &Column)], rows: &[Row], terminal: &Terminal) -> Self {
        let mut strips = Vec::new();
        for (at, column) in columns {
            let mains = rows.iter().map(|row| main(&row.cells[*at], terminal)).collect();
            let halves: Vec<(String, Look)> =
                rows.iter().map(|row| (half(&row.cells[*at], terminal), Look::Dim)).collect();
            let head = Column { head: String::new(), number: false, ..(*column).clone() };
            let beside = Strip { is_close: true, ..Strip::new(&head, halves) };
            strips
                .extend([Strip::new(column, mains), beside].into_iter().filter(|s| !s.is_empty()));
        }
        Self { strips, gap: 2, is_stacked: false }
    }

    fn gap_before(&self, at: usize) -> usize {
        if at == 0 {
            0
        } else if self.strips[at].is_close {
            1
        } else {
            self.gap
        }
    }

    fn width(&self) -> usize {
        let gaps: usize = (0..self.strips.len()).map(|at| self.gap_before(at)).sum();
        INDENT + gaps + self.strips.iter().map(|strip| strip.width).sum::<usize>()
    }

    /// Makes the grid as narrow as the terminal; returns what stands below each row.
    fn fit(&mut self, width: usize) -> Vec<Strip> {
        let mut below = Vec::new();
        if self.width() > width {
            self.gap = 1;
        }
        // Rather below its row than a text broken into many short lines.
        let gentle = |strip: &Strip| strip.least().max(strip.width * 2 / 5);
        if self.width() > width && !self.shrink(width, gentle) {
            self.strips.retain(|strip| !strip.is_spare);
        }
        while self.width() > width && !self.shrink(width, gentle) {
            let last = self.strips.iter().rposition(|strip| !strip.is_number && !strip.is_close);
            match last.filter(|at| *at > 0) {
                Some(at) => below.insert(0, self.strips.remove(at)),
                None => break,
            }
        }
        self.is_stacked = self.width() > width && !self.shrink(width, Strip::least);
        below
    }

    /// Takes columns from the widest texts, down to the least of each; false where that is not
    /// enough.
    fn shrink(&mut self, width: usize, least: impl Fn(&Strip) -> usize) -> bool {
        let spare = |strip: &Strip| match strip.is_number || strip.is_close {
            true => 0,
            false => strip.width.saturating_sub(least(strip)),
        };
        let mut spare: Vec<usize> = self.strips.iter().map(spare).collect();
        let excess = self.width() - width;
        if spare.iter().sum::<usize>() < excess {
            return false;
        }
        for _ in 0..excess {
            let widest = (0..spare.len()).filter(|at| spare[*at] > 0);
            let Some(at) = widest.max_by_key(|at| self.strips[*at].width) else { return false };
            self.strips[at].width -= 1;
            spare[at] -= 1;
        }
        true
    }

    fn heads(&self, terminal: &Terminal) -> Vec<String> {
        if self.is_stacked || self.strips.iter().all(|strip| strip.head.is_empty()) {
            return Vec::new();
        }
        let mut out = Vec::new();
        if self.strips.iter().any(|strip| !strip.group.is_empty()) {
            out.push(terminal.styled(Look::Dim, self.groups(terminal).trim_end()));
        }
        let cell = |(at, strip): (usize, &Strip)| {
            let gap = " ".repeat(self.gap_before(at));
            gap + &aligned(
                &cut(&terminal.clean(&strip.head), strip.width),
                strip.width,
                strip.is_number,
            )
        };
        let heads: String = self.strips.iter().enumerate().map(cell).collect();
        out.push(terminal.styled(Look::Dim, format!("  {heads}").trim_end()));
        out
    }

    /// The names above groups of columns, each at the right of its own.
    fn groups(&self, terminal: &Terminal) -> String {
        let mut line = " ".repeat(INDENT);
        let mut spans: Vec<(&str, usize)> = Vec::new();
        for (at, strip) in self.strips.iter().enumerate() {
            let wide = self.gap_before(at) + strip.width;
            match spans.last_mut() {
                Some((group, span)) if *group == strip.group => *span += wide,
                _ => spans.push((&strip.group, wide)),
            }
        }
        for (group, span) in spans {
            line += &aligned(&cut(&terminal.clean(group), span.saturating_sub(1)), span, true);
        }
        line
    }

    fn row(&self, at: usize, row: &Row, terminal: &Terminal) -> Vec<String> {
        let cells: Vec<Vec<String>> = self
            .strips
            .iter()
            .map(|strip| match length(&strip.cells[at]) > strip.width {
                true => wrapped_to(&strip.cells[at], strip.width, strip.width),
                false => vec![strip.cells[at].clone()],
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |n: usize| {
            let mut line = " ".repeat(INDENT);
            let mut end = line.len();
            for (place, (strip, cell)) in self.strips.iter().zip(&cells).enumerate() {
                line += &" ".repeat(self.gap_before(place));
                let text = cell.get(n).map_or("", String::as_str);
                let text = aligned(text, strip.width, strip.is_number);
                let look =
                    if row.tone == Default::default() { strip.looks[at] } else { row.tone.into() };
                if text.trim().is_empty() {
                    line += &text;
                } else {
                    let kept = text.trim_end();
                    line += &terminal.styled(look, kept);
                    end = line.len();
                    line += &text[kept.len()..];
                }
            }
            line.truncate(end);
            line
        };
        (0..height).map(line).collect()
    }

    /// A row as its name and, below it, each figure behind its head.
    fn stacked(&self, at: usize, below: &[Strip], terminal: &Terminal) -> Vec<String> {
        let mut strips = self.strips.iter();
        let name = strips.next().map_or("", |strip| strip.cells[at].as_str());
        let mut parts: Vec<String> = Vec::new();
        for strip in strips.filter(|strip| !strip.cells[at].is_empty()) {
            match parts.last_mut() {
                Some(last) if strip.is_close => *last += &format!(" {}", strip.cells[at]),
                _ => parts.push(format!("{} {}", strip.head, strip.cells[at]).trim().to_owned()),
            }
        }
        parts.extend(
            below.iter().map(|strip| strip.cells[at].clone()).filter(|cell| !cell.is_empty()),
        );
        let mut out = terminal.wrapped(name, INDENT, INDENT);
        out.extend(terminal.wrapped(&parts.join(", "), 2 * INDENT, 0));
        out
    }
}

/// A cell without half its interval.
fn main(cell: &Cell, terminal: &Terminal) -> (String, Look) {
    let look = match (&cell.what, cell.tone) {
        (What::Layer(layer), _) => Look::Layer(*layer),
        (What::Verdicts(_), _) => Look::Warn,
        (_, tone) if tone != Default::default() => tone.into(),
        (What::Figure(..) | What::Change(..) | What::Ratio(_), _) => Look::Bold,
        (What::Interval(..) | What::RatioInterval(..), _) => Look::Dim,
        _ => Look::Plain,
    };
    let text = match (cell.number(), &cell.what) {
        (Some(number), _) => {
            number.shown.text + &number.range.map_or(String::new(), |r| format!(" {r}"))
        }
        (None, What::Text(text)) => plain(text),
        // The gravest in a word; what it means stands below the table or in the report.
        (None, What::Verdicts(all)) => {
            all.iter().next().map_or(String::new(), |one| format!("*{}", words::verdict_word(one)))
        }
        (None, What::Layer(layer)) => layer.title().to_owned(),
        (None, _) => String::new(),
    };
    (terminal.clean(&text), look)
}

fn half(cell: &Cell, terminal: &Terminal) -> String {
    let half = cell.number().and_then(|number| number.shown.half);
    half.map_or(String::new(), |half| terminal.clean(&half))
}

/// A sentence without any look.
fn plain(text: &Text) -> String {
    let all: String = text.0.iter().map(flat).collect();
    all.trim().trim_end_matches(';').to_owned()
}

fn flat(span: &Span) -> String {
    match span {
        Span::Plain(text)
        | Span::Strong(text)
        | Span::Muted(text)
        | Span::Code(text)
        | Span::Link(_, text) => text.clone(),
        Span::Tag(_, text) => format!("{text}; "),
        Span::Layer(layer) => layer.title().to_owned(),
        Span::Verdicts(all) if all.is_sound() => String::new(),
        Span::Verdicts(all) => format!(" Cautions: {}.", words::verdicts(all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cell::{text, value};

    #[test]
    fn a_number_and_its_percent_stay_in_one_line() {
        let text = "of all 8.9 % are";
        assert_eq!(wrapped(text.split(' '), 10), ["of all", "8.9 % are"]);
        assert_eq!(wrapped_to(text, 10, 10), ["of all", "8.9 % are"]);
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let [plain, colour] = [false, true].map(|colour| Terminal::new(80, colour));
        assert_eq!(plain.clean("a\u{1b}[31mb\tc\u{202e}d\n"), "a?[31mb c?d ");
        assert_eq!(
            (plain.clean("\u{b1} 1"), colour.clean("\u{b1} 1")),
            ("+- 1".into(), "\u{b1} 1".into())
        );
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut_middle("write + fdatasync, 16 committers", 20), "write + f..ommitters");
        assert_eq!(cut_middle("short", 20), "short");
    }

    #[test]
    fn a_line_never_ends_between_a_number_and_its_percent() {
        let lines = |width| wrapped_to("no more than (95 % 31 to 45 %).", width, width);
        assert_eq!(lines(16), ["no more than", "(95 % 31 to", "45 %)."]);
        assert_eq!(lines(31), ["no more than (95 % 31 to 45 %)."]);
    }

    #[test]
    fn what_hangs_is_further_in_and_keeps_to_the_width() {
        let lines = Terminal::new(60, false).wrapped(&"word ".repeat(30), 2, 2);
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("    word"), "{lines:?}");
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 60), "{lines:?}");
    }

    #[test]
    fn a_stacked_row_keeps_its_note() {
        let mut table = Table::of([1.0]).words("", |_| text("a row"));
        for head in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"] {
            table = table.numbers(head, |n| value(*n, "writes/s"));
        }
        let table = table.each(|_, row| row.below = Some("why it is so".to_owned()));
        let lines = lines(&table.into(), &Terminal::new(60, false));
        assert_eq!(lines[0], "  a row", "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("why it is so")), "{lines:#?}");
    }

    #[test]
    fn names_stay_whole_where_figures_have_no_room_beside_them() {
        let name = "innodb_max_dirty_pages_pct_lwm";
        let mut table = Table::of([1.0]).words("Setting", |_| text(name));
        for head in ["one", "two", "three", "four"] {
            table = table.numbers(head, |n| value(*n, "transactions/s"));
        }
        let lines = lines(&table.into(), &Terminal::new(95, false));
        assert_eq!(lines[0], format!("  {name}"), "{lines:#?}");
        assert!(lines[1].contains("one 1 transactions/s, two 1 transactions/s"), "{lines:#?}");
    }
}
