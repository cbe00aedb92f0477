//! Panels as one SVG file: small multiples with a legend, for documents that embed a picture.
//!
//! Method: the plots are those of a page. What a page leaves to its style and to the flow of its
//! text has a fixed place here, in pixels of a page as wide as most readers have.
//! Invariants: the file asks for nothing, runs no script, and is light on any page; what leaves
//! a scale is said at the foot.

use maud::{Markup, PreEscaped, html};

use super::lines::{Canvas, Drawing, ink};
use crate::chart::{Chart, Plot, Stroke};
use crate::colour::on_light;
use crate::document::Sheet;
use crate::terminal::wrapped_to;
use crate::words;

const STYLE: &str = include_str!("../../assets/sheet.css");

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
/// From one row of panels to the next.
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
    columns: Some(PLOT[0] as usize / 2),
};

/// The whole file.
pub(crate) fn sheet(sheet: &Sheet) -> String {
    let charts: Vec<(Markup, Option<String>)> = sheet.panels.charts.iter().map(panel).collect();
    let said = wrapped_to(&sheet.says, LETTERS, LETTERS);
    let legend = placed(&sheet.panels.legend);
    let cuts: Vec<&str> = charts.iter().filter_map(|(_, cut)| cut.as_deref()).collect();
    let cuts = match cuts.is_empty() {
        true => Vec::new(),
        false => wrapped_to(&format!("Beyond the scale: {}.", cuts.join(", ")), LETTERS, LETTERS),
    };
    let from = MARGIN + 20.0;
    let legend_at = from + LINE * (said.len() + 1) as f64 + 10.0;
    let rows_at = legend_at + legend.last().map_or(0.0, |last| last.1) + 30.0;
    let foot_at = rows_at + charts.len().div_ceil(COLUMNS) as f64 * ROW;
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
            @for (n, (chart, _)) in charts.iter().enumerate() {
                @let left = MARGIN + CELL_WIDTH * (n % COLUMNS) as f64;
                @let top = rows_at + ROW * (n / COLUMNS) as f64;
                g transform={ "translate(" (left) " " (top) ")" } { (chart) } "\n"
            }
            (lines(&cuts, foot_at))
        }
    };
    // Other than HTML, XML bears no control characters.
    let steers = |c: char| c.is_control() && c != '\n';
    on_light(&file.into_string()).replace(steers, "?") + "\n"
}

/// A chart with its title; what leaves its scale.
fn panel(chart: &Chart) -> (Markup, Option<String>) {
    let Plot::Lines(lines) = &chart.plot else { return (html! {}, None) };
    let drawing = Drawing::new(lines, lines.scale, &CANVAS);
    let unit = format!(" {}", lines.x);
    let body = html! {
        text.title { (chart.title) @if !chart.says.is_empty() { ": " (chart.says) } }
        svg x=(LABELS) y="14" width=(PLOT[0]) height=(PLOT[1]) overflow="visible" {
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

/// The entries of a legend, one beside the other as far as they fit.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Course, Line, Lines, Scale, Slices, solid};
    use crate::colour::Colour;
    use crate::document::Panels;

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
