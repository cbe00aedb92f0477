//! Text for a terminal: styles that can be absent, cut and wrapped lines.
//!
//! Invariants: without colour there is no escape sequence and no character of our own outside
//! ASCII; control characters of names never reach the terminal.

use anstyle::{AnsiColor, Style};
use iostrata_plan::Layer;

use crate::report::cell::Tone;

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
        let coloured = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        let style = match look {
            Look::Plain => return text.to_owned(),
            Look::Bold => Style::new().bold(),
            Look::Dim => Style::new().dimmed(),
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
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            // A number and its percent stay in one line.
            Some(number) if word.starts_with('%') => number.extend([" ", word]),
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let most = if lines.len() > 1 { others } else { first };
        let word = cut_middle(&word, first.min(others));
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(&word) <= most => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
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
}
