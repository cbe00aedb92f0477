//! Panels as one SVG file: small multiples with a legend, for documents that embed a picture.
//!
//! Method: the plots are those of a page. What a page leaves to its style and to the flow of its
//! text has a fixed place here, in pixels of a page as wide as most readers have. A title stands in
//! one line, else smaller, else in up to four lines, none wider than its place by the usual width
//! of its letters; what these lines cannot hold loses its middle, and is whole for who points at
//! it. Invariants: the file loads nothing, runs no script, and is light on any page; what leaves a
//! scale is stated at the foot.

use maud::{Markup, PreEscaped, html};

use super::plot::{Canvas, Drawing, ink};
use crate::report::chart::{Chart, Lines, Plot, Stroke};
use crate::report::colour::on_light;
use crate::report::document::Sheet;
use crate::report::terminal::{length, wrapped_to};
use crate::report::words;

const STYLE: &str = include_str!("../../../assets/sheet.css");

const WIDTH: f64 = 900.0;
const COLUMNS: usize = 2;
/// Around everything.
const MARGIN: f64 = 18.0;
/// Left of a plot, for the labels of its axis.
const LABELS: f64 = 42.0;
/// Between a plot and what follows at its right.
const GUTTER: f64 = 14.0;
const CELL_WIDTH: f64 = (WIDTH - 2.0 * MARGIN) / COLUMNS as f64;
const PLOT: [f64; 2] = [CELL_WIDTH - LABELS - GUTTER, 84.0];
/// From one row of panels to the next, where titles have one line.
const ROW: f64 = 140.0;
const LINE: f64 = 19.0;
/// Letters that fit into the width of the sheet.
const LETTERS: usize = 128;
/// Pixels of a letter, at most on the average.
const LETTER: f64 = 7.0;
/// A sample of a line in the legend, with the space behind it.
const SAMPLE: f64 = 34.0;

/// A column for every two pixels: a line is hardly narrower.
const CANVAS: Canvas = Canvas {
    height: PLOT[1],
    width: PLOT[0],
    steps: [5.0, 4.0],
    inner: PLOT,
    names_unit: false,
    columns: Some(PLOT[0] as usize / 2),
};

/// A chart at its place below the legend.
struct Placement {
    left: f64,
    top: f64,
    body: Markup,
    /// What leaves its scale.
    cut: Option<String>,
}

/// Charts, two next to each other, with their height.
fn place(charts: &[Chart]) -> (Vec<Placement>, f64) {
    let (mut all, mut top) = (Vec::new(), 0.0);
    for row in charts.chunks(COLUMNS) {
        let headings: Vec<Heading> = row.iter().map(heading).collect();
        let below = headings.iter().map(Heading::below).fold(0.0, f64::max);
        for (column, (chart, heading)) in row.iter().zip(&headings).enumerate() {
            let left = CELL_WIDTH * column as f64;
            // Whatever has a sheet has lines alone.
            let Plot::Lines(lines) = &chart.plot else { continue };
            let (plot, cut) = panel(chart, lines, 14.0 + below);
            let body = html! { (heading.markup()) (plot) };
            all.push(Placement { left, top, body, cut });
        }
        top += ROW + below;
    }
    (all, top)
}

fn heading(chart: &Chart) -> Heading {
    let says = if chart.says.is_empty() { "" } else { ": " };
    Heading::new(&format!("{}{says}{}", chart.title, chart.says), CELL_WIDTH - GUTTER)
}

/// The whole file.
pub(crate) fn sheet(sheet: &Sheet) -> String {
    let (charts, height) = place(&sheet.panels.charts);
    let said = wrapped_to(&sheet.says, LETTERS, LETTERS);
    let legend = placed(&sheet.panels.legend);
    let cuts: Vec<&str> = charts.iter().filter_map(|one| one.cut.as_deref()).collect();
    let cuts = match cuts.is_empty() {
        true => Vec::new(),
        false => wrapped_to(&format!("Beyond the scale: {}.", cuts.join(", ")), LETTERS, LETTERS),
    };
    let from = MARGIN + 20.0;
    let legend_at = from + LINE * (said.len() + 1) as f64 + 10.0;
    let rows_at = legend_at + legend.last().map_or(0.0, |last| last.1) + 30.0;
    let foot_at = rows_at + height;
    let height = foot_at + LINE * cuts.len() as f64;
    let lines = |all: &[String], from: f64| {
        html! { @for (n, line) in all.iter().enumerate() {
            text x=(MARGIN) y=(from + LINE * n as f64) { (line) }
        } }
    };
    let file = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height)
            viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(sheet.title) {
            style { (PreEscaped(STYLE)) }
            rect.page x="0.5" y="0.5" width=(WIDTH - 1.0) height=(height - 1.0) rx="6" {}
            text.head x=(MARGIN) y=(from) { (sheet.title) }
            (lines(&said, from + LINE + 5.0))
            @for (left, top, stroke, name) in legend {
                g transform={ "translate(" (MARGIN + left) " " (legend_at + top) ")" } {
                    line.stroke x2="26" y1="-4" y2="-4" style=(ink(stroke)) {}
                    text x=(SAMPLE) { (name) }
                }
            }
            @for Placement { left, top, body, .. } in charts {
                g transform={ "translate(" (MARGIN + left) " " (rows_at + top) ")" } { (body) } "\n"
            }
            (lines(&cuts, foot_at))
        }
    };
    // Other than HTML, XML bears no control characters.
    let steers = |c: char| c.is_control() && c != '\n';
    on_light(&file.into_string()).replace(steers, "?") + "\n"
}

/// Lines from so far down; what leaves their scale.
fn panel(chart: &Chart, lines: &Lines, top: f64) -> (Markup, Option<String>) {
    let drawing = Drawing::new(lines, lines.scale, &CANVAS);
    let unit = format!(" {}", lines.x);
    let body = html! {
        svg x=(LABELS) y=(top) width=(PLOT[0]) height=(PLOT[1]) overflow="visible" {
            (drawing.markup(&unit))
        }
    };
    let [above, below] = drawing.outside();
    let most = above.into_iter().reduce(f64::max).map(|end| ("up", end));
    let least = below.into_iter().reduce(f64::min).map(|end| ("down", end));
    let ends = [most, least].into_iter().flatten();
    let ends = ends.map(|(way, end)| format!(" {way} to {}", words::value(end, "")));
    let ends: Vec<String> = ends.collect();
    (body, (!ends.is_empty()).then(|| format!("{}{}", chart.title, ends.join(" and"))))
}

/// The entries of a legend, one next to the other as far as they fit.
fn placed(legend: &[(Stroke, String)]) -> Vec<(f64, f64, Stroke, &str)> {
    let (mut left, mut top) = (0.0, 0.0);
    let mut all = Vec::new();
    for (stroke, name) in legend {
        let width = SAMPLE + name.chars().count() as f64 * LETTER;
        if left > 0.0 && left + width > WIDTH - 2.0 * MARGIN {
            (left, top) = (0.0, top + LINE);
        }
        all.push((left, top, *stroke, name.as_str()));
        left += width + GUTTER;
    }
    all
}

/// Pixels of a bold letter, at most on the average: at the usual size, and at the smaller one.
const HEADING_LETTER: f64 = 9.5;
const SMALL_LETTER: f64 = 8.7;
/// A study of many factors fills three: two would leave out the level that the chart is about.
const LINES_MAX: usize = 4;
/// From one line to the next.
const HEADING_LINE: f64 = 16.0;
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
        let is_small = length(title) > (width / HEADING_LETTER) as usize;
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
        HEADING_LINE * self.lines.len().saturating_sub(1) as f64
    }

    pub(super) fn markup(&self) -> Markup {
        let line = |(n, line): (usize, &String)| {
            let y = (n > 0).then_some(HEADING_LINE * n as f64);
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
    use crate::report::chart::{Course, Line, Scale, Slices, solid};
    use crate::report::colour::Colour;
    use crate::report::document::Panels;

    fn chart(title: &str, values: &[f64]) -> Chart {
        let slices = Slices { width_s: 1.0, values: values.into(), unit: "", title: String::new() };
        let (stroke, course) = (solid(Colour::Line(0)), Course::Slices(slices));
        let line = Line { name: String::new(), stroke, course, marked: None };
        let lines = Lines::new("s", "y", vec![line]).panel(Scale::Shared(10.0));
        Chart::new(title, title, Plot::Lines(lines)).says("holds")
    }

    fn drawn(says: &str) -> String {
        let charts = vec![chart("a<b\u{1}", &[1.0, 400.0, 2.0]), chart("c", &[1.0, 2.0, 3.0])];
        let legend = vec![(solid(Colour::Line(0)), "name ".repeat(30)); 3];
        let panels = Panels { legend, charts, has_switch: false };
        sheet(&Sheet { title: "Title".to_owned(), says: says.to_owned(), panels })
    }

    #[test]
    fn it_stands_alone_and_says_what_it_cuts() {
        let file = drawn("What was run.");
        assert!(file.contains(">a&lt;b?: holds<") && file.contains(">c: holds<"), "{file}");
        assert!(file.contains(">Beyond the scale: a&lt;b? up to 400.<"), "{file}");
        assert_eq!(file.matches("://").count(), 1, "the name space alone: {file}");
        for word in ["var(", "<script", "url(", "@import", "href", "\u{1}"] {
            assert!(!file.contains(word), "{word} in {file}");
        }
    }

    #[test]
    fn charts_stand_in_twos() {
        let (placed, height) = place(&[(); 3].map(|()| chart("line", &[1.0, 2.0])));
        let at: Vec<(bool, f64)> = placed.iter().map(|one| (one.left > 0.0, one.top)).collect();
        assert_eq!((at, height), (vec![(false, 0.0), (true, 0.0), (false, ROW)], 2.0 * ROW));
    }

    #[test]
    fn long_titles_stay_beside_each_other_and_lower_their_row() {
        let long = "Policy adaptive, 16 workers, buffer pool size 128M, redo log capacity 128M";
        let charts = [chart("a", &[1.0]), chart(long, &[1.0]), chart("b", &[1.0])];
        let (placed, height) = place(&charts);
        let plot =
            |one: &Placement, y: u32| one.body.0.contains(&format!("<svg x=\"42\" y=\"{y}\""));
        assert!(plot(&placed[0], 30) && plot(&placed[1], 30), "the plots of a row are level");
        assert!(plot(&placed[2], 14), "{}", placed[2].body.0);
        assert_eq!((placed[2].top, height), (ROW + 16.0, 2.0 * ROW + 16.0));
        let titles = placed[1].body.0.matches("class=\"title long\"").count();
        assert_eq!(titles, 2, "a line of its own for what does not fit: {}", placed[1].body.0);
    }

    #[test]
    fn it_grows_with_what_it_says() {
        let height = |says: &str| -> f64 {
            drawn(says).split('"').nth(5).and_then(|height| height.parse().ok()).unwrap()
        };
        assert_eq!(height(&"word ".repeat(40)) - height("word"), LINE);
        let entries = vec![(solid(Colour::Grey), "name ".repeat(30)); 2];
        let [first, second] = placed(&entries)[..] else { panic!("two entries") };
        assert_eq!((first.0, first.1, second.0, second.1), (0.0, 0.0, 0.0, LINE));
    }
}

#[cfg(test)]
mod heading_tests {
    use super::*;

    const WIDTH: f64 = 420.0;

    fn drawn(title: &str) -> (Vec<String>, String) {
        let heading = Heading::new(title, WIDTH);
        for line in &heading.lines {
            let letter = if heading.is_small { SMALL_LETTER } else { HEADING_LETTER };
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
