//! What terminal text is put together from: styles that can be absent, columns, wrapped lines.
//!
//! Invariants: without colour there is no escape sequence and no character of our own outside
//! ASCII; control characters of names never reach the terminal.

use anstyle::{AnsiColor, Style};
use iostrata_spec::Layer;

/// The terminal that is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    /// Columns.
    pub(crate) width: usize,
    /// Whether styles and block characters may be used.
    pub(crate) colour: bool,
}

/// Fewest columns that are laid out for; a narrower terminal wraps by itself.
const NARROWEST: usize = 60;

impl Paper {
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self { width: width.clamp(NARROWEST, 160), colour }
    }

    /// Text in a style.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.styled(Style::new().bold().fg_color(Some(AnsiColor::Green.into())), text)
    }

    pub(crate) fn warn(&self, text: &str) -> String {
        self.styled(Style::new().fg_color(Some(AnsiColor::Yellow.into())), text)
    }

    pub(crate) fn of_layer(&self, layer: Layer, text: &str) -> String {
        self.styled(Style::new().fg_color(Some(colour_of(layer).into())), text)
    }

    /// The sign before half an interval.
    pub(crate) fn plus_minus(&self) -> &'static str {
        if self.colour { "\u{b1}" } else { "+-" }
    }

    /// Text as lines of at most the width, each after `indent` spaces.
    pub(crate) fn wrapped(&self, text: &str, indent: usize) -> Vec<String> {
        let room = self.width.saturating_sub(indent).max(20);
        let lines = wrapped_to(text, room);
        lines.into_iter().map(|line| " ".repeat(indent) + &line).collect()
    }
}

impl Paper {
    /// The same with every line but the first two columns further in.
    pub(crate) fn hanging(&self, text: &str, indent: usize) -> Vec<String> {
        let mut lines = self.wrapped(text, indent + 2);
        if let Some(first) = lines.first_mut() {
            first.drain(..2);
        }
        lines
    }
}

fn colour_of(layer: Layer) -> AnsiColor {
    match layer {
        Layer::Host => AnsiColor::White,
        Layer::Device => AnsiColor::Green,
        Layer::Block | Layer::FileApi => AnsiColor::Yellow,
        Layer::Limit | Layer::Transactions => AnsiColor::Magenta,
        Layer::Filesystem => AnsiColor::Blue,
        Layer::Engine => AnsiColor::Red,
    }
}

/// Text without characters that steer a terminal or turn the direction of reading.
pub(crate) fn clean(text: &str) -> String {
    const MARKS: std::ops::RangeInclusive<char> = '\u{200e}'..='\u{200f}';
    const TURNS: std::ops::RangeInclusive<char> = '\u{202a}'..='\u{202e}';
    const ISOLATES: std::ops::RangeInclusive<char> = '\u{2066}'..='\u{2069}';
    let turns = |c: char| [MARKS, TURNS, ISOLATES].iter().any(|range| range.contains(&c));
    let steers = |c: char| c.is_control() || turns(c);
    text.chars()
        .map(|c| {
            if c.is_whitespace() {
                ' '
            } else if steers(c) {
                '?'
            } else {
                c
            }
        })
        .collect()
}

/// Text as lines of at most `room` columns, but for words that are longer.
pub(crate) fn wrapped_to(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text cut or filled to a width.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let cut = cut(text, width);
    let filled = width.saturating_sub(cut.chars().count());
    cut + &" ".repeat(filled)
}

/// Text at the right of a width.
pub(crate) fn right(text: &str, width: usize) -> String {
    let filled = width.saturating_sub(text.chars().count());
    " ".repeat(filled) + text
}

/// Text cut to a width, with two dots where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(2)).collect::<String>() + ".."
}

/// Text cut to a width in its middle: names that begin alike differ at their ends.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let end = width.saturating_sub(2) / 2;
    let start = width.saturating_sub(2 + end);
    letters[..start].iter().chain(&['.', '.']).chain(&letters[letters.len() - end..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\tc\u{202e}d\n"), "a?[31mb c?d ");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut_middle("write + fdatasync, 16 committers", 20), "write + f..ommitters");
        assert_eq!(cut_middle("short", 20), "short");
    }

    #[test]
    fn what_hangs_is_further_in() {
        let lines = Paper::new(60, false).hanging(&"word ".repeat(20), 2);
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("    word"), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= 60), "{lines:?}");
    }

    #[test]
    fn lines_keep_to_the_width() {
        let paper = Paper::new(60, false);
        let lines = paper.wrapped(&"word ".repeat(40), 2);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= 60), "{lines:?}");
    }
}
