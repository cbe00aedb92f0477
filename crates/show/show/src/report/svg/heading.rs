//! The title of a chart at its place in a sheet: in one line, else smaller, else in up to
//! four lines.
//!
//! Invariant: no line is wider than the place, by the usual width of its letters; what these lines
//! cannot hold loses its middle, and is whole for who points at it.

use maud::{Markup, html};

use crate::report::terminal::{length, wrapped_to};

/// Pixels of a bold letter, at most on the average: at the usual size, and at the smaller one.
const LETTER: f64 = 9.5;
const SMALL_LETTER: f64 = 8.7;
/// A study of many factors fills three: two would leave out the level that the chart is about.
const LINES_MAX: usize = 4;
/// From one line to the next.
const LINE: f64 = 16.0;
/// What stands for words that are left out.
const LEFT_OUT: &str = "\u{2026}";

pub(super) struct Heading {
    /// At most [`LINES_MAX`].
    lines: Vec<String>,
    is_small: bool,
    /// The whole title where the lines do not hold it.
    whole: Option<String>,
}

impl Heading {
    /// A title on so many pixels.
    pub(super) fn new(title: &str, width: f64) -> Self {
        let is_small = length(title) > (width / LETTER) as usize;
        let most = (width / SMALL_LETTER) as usize;
        if length(title) <= most {
            return Self { lines: vec![title.to_owned()], is_small, whole: None };
        }
        let rest = most - length(LEFT_OUT) - 1;
        let mut lines = wrapped_to(title, most, rest);
        if lines.len() > LINES_MAX {
            let last = last_words(&lines[LINES_MAX - 1..].join(" "), rest);
            lines.truncate(LINES_MAX - 1);
            lines.push(format!("{LEFT_OUT} {last}"));
        }
        let shown = lines.join(" ");
        let is_whole = shown.split_whitespace().eq(title.split_whitespace());
        Self { lines, is_small, whole: (!is_whole).then(|| title.to_owned()) }
    }

    /// How much lower than with one line everything below it stands.
    pub(super) fn below(&self) -> f64 {
        LINE * self.lines.len().saturating_sub(1) as f64
    }

    pub(super) fn markup(&self) -> Markup {
        let line = |(n, line): (usize, &String)| {
            let y = (n > 0).then_some(LINE * n as f64);
            html! { text.title.long[self.is_small] y=[y] { (line) } }
        };
        let lines = html! { @for one in self.lines.iter().enumerate() { (line(one)) } };
        match &self.whole {
            Some(whole) => html! { g { title { (whole) } (lines) } },
            None => lines,
        }
    }
}

/// As many of the last words as fit.
fn last_words(text: &str, most: usize) -> String {
    let mut kept = String::new();
    for word in text.split_whitespace().rev() {
        if !kept.is_empty() && length(word) + 1 + length(&kept) > most {
            break;
        }
        kept = if kept.is_empty() { word.to_owned() } else { format!("{word} {kept}") };
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: f64 = 420.0;

    fn drawn(title: &str) -> (Vec<String>, String) {
        let heading = Heading::new(title, WIDTH);
        for line in &heading.lines {
            let letter = if heading.is_small { SMALL_LETTER } else { LETTER };
            assert!(length(line) as f64 * letter <= WIDTH, "{line}");
        }
        assert_eq!(heading.below() > 0.0, heading.lines.len() > 1);
        let drawn = heading.markup().into_string();
        (heading.lines, drawn)
    }

    #[test]
    fn a_title_becomes_smaller_before_it_takes_a_second_line() {
        let (_, usual) = drawn("Policy adaptive");
        assert_eq!(usual, "<text class=\"title\">Policy adaptive</text>");
        let (lines, small) = drawn("Policy adaptive, 16 workers, transaction short");
        assert!(lines.len() == 1 && small.contains("class=\"title long\""), "{small}");
    }

    #[test]
    fn a_long_title_has_more_lines_and_all_its_words() {
        let two = "Policy adaptive, 1 worker, short, buffer pool size 128M, redo capacity 128M";
        let three = "Disk hdd-15k, dirty bytes 8M, storage engine MyISAM, nr requests 1024, \
                     readers 0, scheduler mq-deadline, wbt lat usec 0";
        for (title, count) in [(two, 2), (three, 3)] {
            let (lines, drawn) = drawn(title);
            assert_eq!(lines.join(" "), title);
            assert_eq!(drawn.matches("<text").count(), count, "{drawn}");
            assert!(!drawn.contains("<title>"), "nothing is left out: {drawn}");
        }
    }

    #[test]
    fn a_longer_one_loses_its_middle_and_is_whole_on_hover() {
        let title = format!("Policy adaptive, {}end <128M>", "flush neighbours none, ".repeat(9));
        let (lines, drawn) = drawn(&title);
        assert_eq!(lines.len(), LINES_MAX, "{lines:?}");
        assert!(lines[0].starts_with("Policy adaptive, flush"), "{lines:?}");
        assert!(lines[3].starts_with("\u{2026} ") && lines[3].ends_with("<128M>"), "{lines:?}");
        let whole = title.replace('<', "&lt;").replace('>', "&gt;");
        assert!(drawn.contains(&format!("<title>{whole}</title>")), "{drawn}");
    }

    #[test]
    fn a_word_without_end_keeps_to_the_place_too() {
        let word = "n".repeat(300);
        for (title, expected) in [(word.clone(), 1), (format!("{word} {word} {word}"), 3)] {
            let (lines, drawn) = drawn(&title);
            assert_eq!(lines.len(), expected, "{lines:?}");
            assert!(drawn.contains("<title>nnn"), "{drawn}");
        }
    }
}
