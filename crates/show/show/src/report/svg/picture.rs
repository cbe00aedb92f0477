//! What answers a question as one SVG file, for documents to embed.
//!
//! Method: the file is as wide as a phone holds, so that its text is read there and nowhere larger
//! than a text around it; all charts stand one below the other. Lines of text are wrapped by the
//! usual width of their letters, names and figures each in a column of their own. Colours are
//! variables of the file's own style, which distinguishes a light page from a dark one. Invariant:
//! the file loads nothing and runs no script.

use maud::{Markup, PreEscaped, html};

use super::plot::{Axis, Canvas, Drawing, ink, labels, step_axis, step_reach, whisker};
use crate::report::chart::{Bar, Chart, Lines, Plot, Step, Stroke, reach};
use crate::report::colour::stylesheet;
use crate::report::document::{Picture, PicturePart};
use crate::report::terminal::{length, wrapped_to};

const STYLE: &str = include_str!("../../../assets/picture.css");

const WIDTH: f64 = 480.0;
const MARGIN: f64 = 16.0;
const INNER: f64 = WIDTH - 2.0 * MARGIN;
/// Columns of rows: names, bars, figures, with the space between them.
const NAMES: f64 = 142.0;
const BARS: f64 = 166.0;
const GAP: f64 = 10.0;
const FIGURES: f64 = INNER - NAMES - BARS - 2.0 * GAP;
/// Left of lines, for the labels of their axis.
const LABELS: f64 = 44.0;
const LINES: f64 = INNER - LABELS - 8.0;
/// Heights of lines: alone, and of several charts in one part.
const TALL: f64 = 150.0;
const FLAT: f64 = 64.0;

/// A size of text: its class, the pixels of a letter, at most on the average, and of a line.
struct Type(&'static str, f64, f64);

const SAYS: Type = Type("says", 9.4, 20.0);
const TITLE: Type = Type("title", 8.2, 17.0);
const PLAIN: Type = Type("plain", 6.6, 15.0);
const SMALL: Type = Type("small", 6.1, 14.0);
const NAME: Type = Type("name", 6.6, 14.0);

/// What is drawn so far, and where the next thing begins.
struct Column {
    drawn: Vec<Markup>,
    at: f64,
}

impl Column {
    /// A paragraph on the whole width.
    fn text(&mut self, text: &str, kind: &Type) {
        for line in wrapped(text, INNER, kind) {
            self.at += kind.2;
            let (class, y) = (kind.0, self.at - 4.0);
            self.drawn.push(html! { text class=(class) x=(MARGIN) y=(y) { (line) } "\n" });
        }
    }

    fn space(&mut self, pixels: f64) {
        self.at += pixels;
    }

    /// Something that is so high.
    fn put(&mut self, body: &Markup, height: f64) {
        let place = format!("translate({MARGIN} {})", self.at);
        self.drawn.push(html! { g transform=(place) { (body) } "\n" });
        self.at += height;
    }
}

fn wrapped(text: &str, width: f64, kind: &Type) -> Vec<String> {
    let letters = (width / kind.1) as usize;
    wrapped_to(text, letters, letters)
}

/// The whole file.
pub(crate) fn picture(picture: &Picture) -> String {
    let mut column = Column { drawn: Vec::new(), at: 10.0 };
    column.text(&picture.says, &SAYS);
    for one in &picture.parts {
        column.space(12.0);
        part(&mut column, one);
    }
    column.space(10.0);
    for note in &picture.notes {
        column.text(note, &SMALL);
    }
    let height = column.at + 12.0;
    let colours = stylesheet();
    let file = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height)
            viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(picture.says) {
            style { (PreEscaped(colours)) (PreEscaped(STYLE)) }
            rect.page x="0.5" y="0.5" width=(WIDTH - 1.0) height=(height - 1.0) rx="6" {}
            @for one in &column.drawn { (one) }
        }
    };
    // Other than HTML, XML bears no control characters.
    let steers = |c: char| c.is_control() && c != '\n';
    file.into_string().replace(steers, "?") + "\n"
}

fn part(column: &mut Column, part: &PicturePart) {
    column.text(&part.title, &TITLE);
    if !part.common.is_empty() {
        column.text(&part.common, &PLAIN);
    }
    let is_alone = part.charts.len() == 1;
    for chart in &part.charts {
        draw(column, chart, if is_alone { TALL } else { FLAT });
    }
    for line in &part.figures {
        column.text(line, &SMALL);
    }
}

fn draw(column: &mut Column, chart: &Chart, height: f64) {
    if !chart.title.is_empty() {
        column.space(4.0);
        column.text(&chart.title, &PLAIN);
    }
    if !chart.says.is_empty() {
        column.text(&chart.says, &SMALL);
    }
    match &chart.plot {
        Plot::Lines(lines) => {
            let is_flat = lines.lines.iter().all(|line| line.name.is_empty());
            plot(column, lines, if is_flat { height } else { TALL });
        }
        Plot::Bars(_, rows) => bars(column, rows),
        Plot::Steps(rows) => stairs(column, rows),
        Plot::Ratios(..) | Plot::Shares(..) => {}
    }
}

/// Lines with their names above them.
fn plot(column: &mut Column, lines: &Lines, height: f64) {
    let named = lines.lines.iter().filter(|line| !line.name.is_empty());
    let names: Vec<(Stroke, &str)> = named.map(|line| (line.stroke, line.name.as_str())).collect();
    if names.len() > 1 {
        legend(column, &names);
    }
    let canvas = Canvas {
        height,
        width: LINES,
        steps: [5.0, if height < TALL { 2.0 } else { 4.0 }],
        inner: [LINES, height],
        names_unit: true,
        columns: Some(LINES as usize / 2),
    };
    let drawing = Drawing::new(lines, lines.scale, &canvas);
    // A short unit stands behind the last number of the axis, words have a line of their own.
    let is_short = length(&lines.x) <= 2;
    let unit = if is_short { format!(" {}", lines.x) } else { String::new() };
    let body = html! {
        svg x=(LABELS) y="10" width=(LINES) height=(height) overflow="visible" {
            (drawing.markup(&unit))
            @if !is_short {
                text x="50%" y=(height + 31.0) text-anchor="middle" { (lines.x) }
            }
        }
    };
    column.put(&body, height + if is_short { 34.0 } else { 48.0 });
    if let Some(cut) = drawing.beyond() {
        column.text(&cut, &SMALL);
    }
}

/// Names of lines, one next to the other as far as they fit.
fn legend(column: &mut Column, names: &[(Stroke, &str)]) {
    let (mut left, mut top) = (0.0, 14.0);
    let mut drawn = Vec::new();
    for (stroke, name) in names {
        let width = 26.0 + length(name) as f64 * PLAIN.1;
        if left > 0.0 && left + width > INNER {
            (left, top) = (0.0, top + PLAIN.2);
        }
        let place = format!("translate({left} {top})");
        drawn.push(html! { g transform=(place) {
            line.stroke x2="20" y1="-4" y2="-4" style=(ink(*stroke)) {}
            text.name x="26" { (name) }
        } });
        left += width + 14.0;
    }
    column.put(&html! { @for one in &drawn { (one) } }, top + 4.0);
}

/// What stands around a row: its name, its figure and how sure that is.
struct Row<'a> {
    title: &'a str,
    shown: &'a str,
    spread: &'a str,
    hover: &'a str,
}

/// A row around a bar that is drawn at a height of its own.
fn row(column: &mut Column, of: &Row<'_>, bar: &Markup) {
    let name = wrapped(of.title, NAMES, &NAME);
    let whole = format!("{} {}", of.shown, of.spread);
    // A figure and its interval stand next to each other where both fit.
    let is_short = length(&whole) as f64 * NAME.1 <= FIGURES;
    let lines = name.len().max(if is_short || of.spread.is_empty() { 1 } else { 2 });
    let height = 8.0 + NAME.2 * lines as f64;
    let first = |count: usize| (height - NAME.2 * count as f64) / 2.0 + 11.0;
    let right = NAMES + BARS + 2.0 * GAP;
    let body = html! {
        g {
            title { (of.hover) }
            @for (n, line) in name.iter().enumerate() {
                text.name y=(first(name.len()) + NAME.2 * n as f64) { (line) }
            }
            svg.bar x=(NAMES + GAP) y=((height - 20.0) / 2.0) width=(BARS) height="20"
                overflow="visible" { (bar) }
            @if is_short {
                text x=(right) y=(first(1)) { tspan class="shown" { (of.shown) } " " (of.spread) }
            } @else {
                text.shown x=(right) y=(first(2)) { (of.shown) }
                text x=(right) y=(first(2) + NAME.2) { (of.spread) }
            }
        }
    };
    column.put(&body, height);
}

/// A bar below the other, from zero.
fn bars(column: &mut Column, rows: &[Bar]) {
    let figures: Vec<_> = rows.iter().map(|row| (row.value, row.ci95)).collect();
    let axis = Axis::linear(reach(&figures));
    for (n, of) in rows.iter().enumerate() {
        if (n == 0 || rows[n - 1].group != of.group) && !of.group.is_empty() {
            column.space(6.0);
            column.text(&of.group, &PLAIN);
        }
        let [from, to] = [0.0, of.value.min(axis.high)].map(|end| axis.at(end) * 100.0);
        let bar = html! {
            rect x=(format!("{:.2}%", from.min(to))) y="4" height="12"
                width=(format!("{:.2}%", (to - from).abs().max(0.4)))
                style={ "fill:" (of.colour.css()) } {}
            (whisker(&axis, of.ci95))
        };
        let Bar { title, shown, spread, hover, .. } = of;
        row(column, &Row { title, shown, spread, hover }, &bar);
    }
}

/// A step below the other, over an axis of ratios.
fn stairs(column: &mut Column, rows: &[Step]) {
    let (axis, ticks) = step_axis(rows);
    let ticks = axis.apart(&ticks, BARS);
    let one = axis.percent(1.0);
    for of in rows {
        let [left, width] = step_reach(&axis, of);
        let bar = html! {
            line.one x1=(one) x2=(one) y1="-4" y2="24" {}
            rect x=(format!("{left:.2}%")) y="4" height="12" width=(format!("{width:.2}%"))
                style={ "fill:" (of.colour.css()) } {}
            (whisker(&axis, of.ci95))
        };
        let Step { title, shown, spread, hover, .. } = of;
        row(column, &Row { title, shown, spread, hover }, &bar);
    }
    let foot = html! {
        svg x=(NAMES + GAP) width=(BARS) height="16" overflow="visible" {
            (labels(&axis, &ticks, 12.0))
        }
    };
    column.put(&foot, 18.0);
}
