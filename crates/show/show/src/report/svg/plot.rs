//! What is drawn of a chart: lines over their axes, and rows of bars, ratios and parts of a whole.
//!
//! Invariants: what lies beyond an axis of rows is cut there and named. A page keeps every slice of
//! time, since its script reads them on hover; a sheet, which has no hover, keeps those that shape
//! the line.

use iostrata_stats::Interval;
use maud::{Markup, html};

use crate::report::chart::{
    Bar, Branch, Course, Line, Lines, Mark, Scale, Slices, Stack, Step, Stroke, reach,
};
use crate::report::colour::Colour;
use crate::report::words;

/// What lines are drawn on.
pub(super) struct Canvas {
    /// Height of the lines in pixels, without the labels below them.
    pub(super) height: f64,
    /// Pixels that the plot has where it is narrowest.
    pub(super) width: f64,
    /// Round values on a linear axis, about: along the width, along the height.
    pub(super) steps: [f64; 2],
    /// Width and height of the box that lines are drawn in.
    pub(super) inner: [f64; 2],
    /// Whether labels of times name their unit, where no title of the axis does.
    pub(super) names_unit: bool,
    /// Columns that a reader can distinguish; nothing where every slice is kept.
    pub(super) columns: Option<usize>,
}

/// Columns that a point takes with room around it.
const POINT_COLUMNS: usize = 5;

/// Lines with their scales.
pub(super) struct Drawing<'a> {
    lines: &'a Lines,
    canvas: &'a Canvas,
    x: Axis,
    x_ticks: Vec<(f64, String)>,
    y: Axis,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(lines: &'a Lines, scale: Scale, canvas: &'a Canvas) -> Self {
        let figures: Vec<_> = lines.lines.iter().flat_map(figures_of).collect();
        let (x, x_ticks) = x_axis(lines, canvas.steps[0]);
        let x_ticks = x.apart(&x_ticks, canvas.width);
        Self { lines, canvas, x, x_ticks, y: y_axis(&figures, scale) }
    }

    /// Grid, labels and lines; the last label of the width may be given its unit.
    pub(super) fn markup(&self, unit: &str) -> Markup {
        let Self { lines, canvas, x, y, .. } = self;
        let height = canvas.height;
        let mut x_ticks = self.x_ticks.clone();
        x_ticks.iter_mut().next_back().into_iter().for_each(|(_, label)| label.push_str(unit));
        let [wide, tall] = canvas.inner;
        html! {
            @let unit_y = if canvas.names_unit && lines.is_time() { "us" } else { "" };
            @for (tick, label) in y.labelled(canvas.steps[1], unit_y) {
                @let at = format!("{:.1}", height * (1.0 - y.at(tick)));
                line.grid x2="100%" y1=(at) y2=(at) {}
                text x="-7" y=(at) dy="4" text-anchor="end" { (label) }
            }
            (labels(x, &x_ticks, height + 16.0))
            svg.box width="100%" height=(height) viewBox={ "0 0 " (wide) " " (tall) }
                preserveAspectRatio="none" {
                @for line in &lines.lines { (course(line, x, y, canvas)) }
            }
            @for (n, line) in lines.lines.iter().enumerate() {
                @for (at, mark) in points_of(line).iter().enumerate() {
                    @if y.has(mark.y) && !self.is_crowded(line) {
                        (self.point(mark, line, &format!("{n}.{at}")))
                    }
                }
            }
        }
    }

    /// Whether the points of a line would cover it, without hover.
    fn is_crowded(&self, line: &Line) -> bool {
        self.canvas.columns.is_some_and(|columns| points_of(line).len() > columns / POINT_COLUMNS)
    }

    /// The figures that leave the scale above and below. A law is drawn as far as it goes.
    pub(super) fn outside(&self) -> [Vec<f64>; 2] {
        let y = &self.y;
        let measured = self.lines.lines.iter().filter(|one| !matches!(one.course, Course::Fit(_)));
        let outside = measured.flat_map(figures_of).map(|one| one.0).filter(|one| !y.has(*one));
        let (above, below) = outside.partition(|value| *value > y.high);
        [above, below]
    }

    /// How many figures leave the scale at either end.
    pub(super) fn beyond(&self) -> Option<String> {
        let [above, below] = self.outside();
        let said = |all: &[f64], place: &str, end: f64| {
            let lie =
                if all.len() == 1 { "1 lies".to_owned() } else { format!("{} lie", all.len()) };
            let end = words::value(end, "");
            (!all.is_empty()).then(|| format!("{lie} {place} {end}."))
        };
        let most = above.iter().copied().fold(0.0, f64::max);
        let least = below.iter().copied().fold(f64::INFINITY, f64::min);
        let most = said(&above, "above the scale, up to", most);
        let least = said(&below, "below the scale, down to", least);
        let all: Vec<String> = [most, least].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// A measured point with its interval.
    fn point(&self, mark: &Mark, line: &Line, at: &str) -> Markup {
        let (Self { x, y, .. }, height) = (self, self.canvas.height);
        let top = height * (1.0 - y.at(mark.y));
        let end = |value: f64| (height * (1.0 - y.at(value))).clamp(0.0, height) - top;
        let marked = line.marked.filter(|(x, _)| *x == mark.x);
        let colour = line.stroke.colour.css();
        html! {
            svg x=(x.percent(mark.x)) y=(format!("{top:.1}")) overflow="visible" data-at=(at)
                style={ "--c:" (colour) ";color:" (colour) } {
                title { (mark.hover) }
                @if let Some(ci95) = mark.ci95 {
                    @let [low, high] = ci95.map(end);
                    @let ends = format!("M-4,{low:.1}h8M-4,{high:.1}h8");
                    path.whisker d=(format!("M0,{low:.1}V{high:.1}{ends}")) {}
                }
                circle r=(if marked.is_some() { "6" } else { "3.2" }) {}
                @if let Some((_, word)) = marked {
                    // Far at the right there is no room behind it.
                    @let is_right = x.at(mark.x) > 0.6;
                    text.marked x=(if is_right { "-10" } else { "8" })
                        y=(if is_right { "-4" } else { "16" })
                        text-anchor=[is_right.then_some("end")] { (word) }
                }
            }
        }
    }
}

/// The colour and dash of a line.
pub(super) fn ink(stroke: Stroke) -> String {
    let dash = ["", ";stroke-dasharray:2 3", ";stroke-dasharray:7 4", ";stroke-dasharray:8 3 2 3"];
    let faint =
        if stroke.faint < 1.0 { format!(";opacity:{}", stroke.faint) } else { String::new() };
    format!("stroke:{}{}{faint}", stroke.colour.css(), dash[stroke.dash % 4])
}

/// All figures of a line with their intervals.
fn figures_of(line: &Line) -> Vec<(f64, Option<Interval>)> {
    match &line.course {
        Course::Points(marks) => marks.iter().map(|mark| (mark.y, mark.ci95)).collect(),
        Course::Fit(points) => points.iter().map(|point| (point[1], None)).collect(),
        Course::Slices(slices) => slices.values.iter().map(|y| (*y, None)).collect(),
    }
}

fn xs(lines: &Lines) -> Vec<f64> {
    let of = |line: &Line| -> Vec<f64> {
        match &line.course {
            Course::Points(marks) => marks.iter().map(|mark| mark.x).collect(),
            Course::Fit(_) => Vec::new(),
            Course::Slices(slices) => vec![0.0, slices.width_s * slices.values.len() as f64],
        }
    };
    let mut all: Vec<f64> = lines.lines.iter().flat_map(of).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// Powers of two stand at equal distances, each with its own tick; other figures start at zero.
fn x_axis(lines: &Lines, steps: f64) -> (Axis, Vec<(f64, String)>) {
    let xs = xs(lines);
    let (first, last) = (xs.first().copied().unwrap_or(0.0), xs.last().copied().unwrap_or(1.0));
    let doubles = xs.len() > 2 && xs.iter().all(|x| *x >= 1.0 && x.log2().fract() == 0.0);
    let ends = |log| Axis { log, low: first / 1.12, high: last * 1.12 };
    if let Some(ticks) = &lines.ticks {
        return (ends(true), ticks.clone());
    }
    if doubles {
        return (ends(true), xs.iter().map(|x| (*x, format!("{x}"))).collect());
    }
    let over_time = |line: &Line| matches!(line.course, Course::Slices(_) | Course::Fit(_));
    let is_time = lines.lines.iter().all(over_time);
    let high = if is_time { last } else { last * 1.04 };
    let axis = Axis::linear([first.min(0.0), high.max(1e-9)]);
    let ticks = axis.labelled(steps, "");
    (axis, ticks)
}

fn y_axis(figures: &[(f64, Option<Interval>)], scale: Scale) -> Axis {
    let low = figures.iter().map(|one| one.0).fold(f64::INFINITY, f64::min);
    let high = figures.iter().map(|one| one.0).fold(0.0, f64::max);
    match scale {
        Scale::Chosen if low > 0.0 && high / low > 40.0 => {
            Axis::around(figures.iter().map(|f| f.0))
        }
        Scale::Chosen | Scale::Linear => Axis::linear(reach(figures)),
        Scale::Shared(top) => Axis::linear([reach(figures)[0], top]),
        Scale::Logarithmic(None) => Axis::around(figures.iter().map(|one| one.0)),
        Scale::Logarithmic(Some([low, high])) => Axis { log: true, low, high },
    }
}

fn points_of(line: &Line) -> &[Mark] {
    match &line.course {
        Course::Points(marks) => marks,
        Course::Fit(_) | Course::Slices(_) => &[],
    }
}

/// A line in its stretched box.
fn course(line: &Line, x: &Axis, y: &Axis, canvas: &Canvas) -> Markup {
    let [wide, tall] = canvas.inner;
    let place = |[px, py]: [f64; 2]| {
        // Far outside is as good as outside, and no renderer stumbles over it.
        let at = (1.0 - y.at(py)).clamp(-3.0, 4.0);
        format!("{:.1},{:.1}", x.at(px) * wide, at * tall)
    };
    let joined =
        |points: Vec<[f64; 2]>| points.into_iter().map(place).collect::<Vec<_>>().join(" ");
    let style = ink(line.stroke);
    match &line.course {
        Course::Points(marks) => {
            let points = joined(marks.iter().map(|mark| [mark.x, mark.y]).collect());
            html! { polyline.line points=(points) style=(style) {} }
        }
        Course::Fit(points) => {
            html! { polyline.fit points=(joined(points.clone())) style=(style) {} }
        }
        Course::Slices(slices) => match canvas.columns {
            Some(columns) => {
                let point = |n: usize| [n as f64 * slices.width_s, slices.values[n]];
                let kept = shaping(slices, columns).into_iter().map(point).collect();
                html! { polyline.line points=(joined(kept)) style=(style) {} }
            }
            None => every_slice(slices, &style, [wide / x.high, tall / y.high], tall),
        },
    }
}

/// The points are the slices themselves; the page's script reads them on hover.
fn every_slice(slices: &Slices, style: &str, [wide, tall]: [f64; 2], height: f64) -> Markup {
    let points: Vec<String> =
        slices.values.iter().enumerate().map(|(n, value)| format!("{n},{value}")).collect();
    let wide = slices.width_s * wide;
    html! {
        polyline.line points=(points.join(" ")) style=(style) data-width=(slices.width_s)
            data-unit=(slices.unit) data-name=(slices.title)
            transform=(format!("matrix({wide} 0 0 {} 0 {height})", -tall)) {}
    }
}

/// The slices that shape a line: of each column the lowest and the highest, and both ends.
fn shaping(slices: &Slices, columns: usize) -> Vec<usize> {
    let values = &slices.values;
    let mut kept = vec![0, values.len().saturating_sub(1)];
    for column in 0..columns {
        let [from, to] = [column, column + 1].map(|edge| edge * values.len() / columns);
        let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        kept.extend((from..to).min_by(by_value));
        kept.extend((from..to).max_by(by_value));
    }
    kept.retain(|n| *n < values.len());
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// An axis: from an end to an end, in equal steps or equal times.
pub(super) struct Axis {
    pub(super) log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Axis {
    pub(super) fn linear([low, high]: Interval) -> Self {
        Self { log: false, low, high }
    }

    /// A logarithmic axis around positive figures.
    pub(super) fn around(figures: impl Iterator<Item = f64>) -> Self {
        let figures = figures.filter(|one| one.is_finite() && *one > 0.0);
        let (low, high) = figures.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return Self { log: true, low: 1.0, high: 10.0 };
        }
        Self { log: true, low: low / 1.25, high: high * 1.25 }
    }

    /// A logarithmic axis around ratios and 1, which has a tick; far ones are left out.
    pub(super) fn of_ratios(all: &[f64]) -> (Self, Vec<(f64, String)>) {
        let low = all.iter().copied().fold(0.9, f64::min).max(0.005);
        let high = all.iter().copied().fold(1.1, f64::max).min(2000.0);
        let margin = (high / low).powf(0.04);
        let axis = Self { log: true, low: low / margin, high: high * margin };
        let ticks: &[f64] = match axis.high / axis.low {
            span if span < 2.5 => &[0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5],
            span if span < 30.0 => &[0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0],
            span if span < 300.0 => &[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
            _ => &[0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0],
        };
        let inside = ticks.iter().filter(|tick| (axis.low..=axis.high).contains(*tick));
        let ticks = inside.map(|tick| (*tick, format!("{tick}x"))).collect();
        (axis, ticks)
    }

    /// The place of a value: 0 at the low end, 1 at the high one.
    pub(super) fn at(&self, value: f64) -> f64 {
        let of = |value: f64| if self.log { value.max(1e-12).ln() } else { value };
        (of(value) - of(self.low)) / (of(self.high) - of(self.low))
    }

    /// Whether a value lies between the ends, but for rounding.
    pub(super) fn has(&self, value: f64) -> bool {
        value >= self.low - self.low.abs() * 1e-4 && value <= self.high + self.high.abs() * 1e-4
    }

    /// Whether an end of an interval lies outside.
    pub(super) fn cuts(&self, ends: Interval) -> bool {
        ends.iter().any(|end| end.is_finite() && !self.has(*end))
    }

    pub(super) fn percent(&self, value: f64) -> String {
        format!("{:.2}%", self.at(value) * 100.0)
    }

    /// About so many steps of round values between the ends; a logarithmic axis has its own.
    fn ticks(&self, steps: f64) -> Vec<f64> {
        let inside = |tick: &f64| (-0.001..=1.001).contains(&self.at(*tick));
        if self.log {
            let decades = (self.high / self.low).log10();
            let digits: &[f64] = match decades {
                wide if wide > 3.0 => &[1.0],
                wide if wide > 1.2 => &[1.0, 3.0],
                _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            };
            let first = self.low.log10().floor() as i32;
            let last = self.high.log10().ceil() as i32;
            let all =
                (first..=last).flat_map(|ten| digits.iter().map(move |s| s * 10f64.powi(ten)));
            return all.filter(inside).collect();
        }
        let rough = (self.high - self.low) / steps;
        let ten = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * ten).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (0..12).map(|n| (first + n) as f64 * step).filter(inside).collect()
    }

    pub(super) fn labelled(&self, steps: f64, unit: &str) -> Vec<(f64, String)> {
        self.ticks(steps).into_iter().map(|tick| (tick, words::value(tick, unit))).collect()
    }

    /// The ticks whose labels do not touch on so many pixels.
    pub(super) fn apart(&self, ticks: &[(f64, String)], width: f64) -> Vec<(f64, String)> {
        let mut free = f64::NEG_INFINITY;
        let mut kept = Vec::new();
        for (tick, label) in ticks {
            let half = label.chars().count() as f64 * 3.5 + 4.0;
            let at = (self.at(*tick) * width).clamp(half - 4.0, width - half + 4.0);
            if at - half >= free {
                free = at + half;
                kept.push((*tick, label.clone()));
            }
        }
        kept
    }
}

/// Pixels that a row has on a phone.
pub(super) const ROW_WIDTH: f64 = 200.0;

/// Steps of their axis, about.
const STEPS: f64 = 5.0;

/// The vertical lines of an axis behind a row.
pub(super) fn grid(axis: &Axis, ticks: &[(f64, String)]) -> Markup {
    html! {
        @for (tick, _) in ticks {
            @let x = axis.percent(*tick);
            line.grid x1=(x) x2=(x) y1="-6" y2="100%" {}
        }
    }
}

/// The labels below rows or lines.
pub(super) fn labels(axis: &Axis, ticks: &[(f64, String)], y: f64) -> Markup {
    html! {
        @for (tick, label) in ticks {
            @let at = axis.at(*tick);
            @let anchor = if at < 0.04 { "start" } else if at > 0.96 { "end" } else { "middle" };
            text x=(axis.percent(*tick)) y=(y) text-anchor=(anchor) { (label) }
        }
    }
}

/// The axis below rows.
pub(super) fn foot(axis: &Axis, ticks: &[(f64, String)], title: &str) -> Markup {
    html! {
        div.row { svg height="16" { (labels(axis, ticks, 12.0)) } }
        p.axis { (title) }
    }
}

pub(super) fn bars(title: &str, rows: &[Bar]) -> (Markup, Option<String>) {
    let figures: Vec<_> = rows.iter().map(|row| (row.value, row.ci95)).collect();
    let axis = Axis::linear(reach(&figures));
    let ticks = axis.apart(&axis.labelled(STEPS, ""), ROW_WIDTH);
    let cut: Vec<&str> =
        rows.iter().filter(|row| row.value > axis.high).map(|row| row.title.as_str()).collect();
    let ends = rows.iter().filter(|row| row.ci95.is_some_and(|ci95| axis.cuts(ci95))).count();
    let cut = match (cut.is_empty(), ends) {
        (false, _) => Some(format!("Cut off at the axis: {}.", cut.join(", "))),
        (true, 0) => None,
        (true, n) => Some(format!("The intervals of {n} end beyond the axis.")),
    };
    let is_new = |n: usize| n == 0 || rows[n - 1].group != rows[n].group;
    let body = html! {
        div.rows {
            @for (n, row) in rows.iter().enumerate() {
                @if is_new(n) && !row.group.is_empty() { p.group { (row.group) } }
                div.row data-at={ "0." (n) } title=(row.hover) {
                    span.name { (row.title) }
                    svg height="20" {
                        (grid(&axis, &ticks))
                        @let ends = [0.0, row.value.min(axis.high)];
                        @let [from, to] = ends.map(|end| axis.at(end) * 100.0);
                        rect x={ (format!("{:.2}%", from.min(to))) } y="3" height="14"
                            width=(format!("{:.2}%", (to - from).abs()))
                            style={ "fill:" (row.colour.css()) } {}
                        @if row.value > axis.high {
                            svg x="97%" overflow="visible" {
                                path.break d="M0,0l5,5-5,5 5,5-5,5" {}
                            }
                        }
                        (whisker(&axis, row.ci95))
                    }
                    span.value { b { (row.shown) } " " (row.spread) }
                }
            }
            (foot(&axis, &ticks, title))
        }
    };
    (body, cut)
}

/// A horizontal interval.
pub(super) fn whisker(axis: &Axis, ci95: Option<Interval>) -> Markup {
    let Some([low, high]) = ci95 else { return html! {} };
    let [from, to] = [low, high].map(|end| axis.percent(end.clamp(axis.low, axis.high)));
    html! {
        line.whisker x1=(from) x2=(to) y1="10" y2="10" {}
        @if low >= axis.low { line.whisker x1=(from) x2=(from) y1="6" y2="14" {} }
        @if high <= axis.high { line.whisker x1=(to) x2=(to) y1="6" y2="14" {} }
    }
}

pub(super) fn ratios(title: &str, rows: &[Branch]) -> (Markup, Option<String>) {
    let of = |row: &Branch| [row.ci95.unwrap_or([row.ratio; 2]), [row.ratio; 2]];
    let all = rows.iter().flat_map(|row| of(row).into_iter().chain(row.range)).flatten();
    let all: Vec<f64> = all.filter(|end| end.is_finite() && *end > 0.0).collect();
    let (axis, ticks) = Axis::of_ratios(&all);
    let ticks = axis.apart(&ticks, ROW_WIDTH);
    let one = axis.percent(1.0);
    let names: Vec<&str> = rows
        .iter()
        .filter(|row| of(row).into_iter().chain(row.range).any(|ends| axis.cuts(ends)))
        .map(|row| row.title.as_str())
        .collect();
    let cut = (!names.is_empty()).then(|| format!("Beyond the axis: {}.", names.join(", ")));
    let body = html! {
        div.rows {
            @for (n, row) in rows.iter().enumerate() {
                div.row data-at={ "0." (n) } title=(row.hover) {
                    span.name { (row.title) }
                    svg height="20" style={ "--c:" (row.colour.css()) } {
                        (grid(&axis, &ticks))
                        line.one x1=(one) x2=(one) y1="-6" y2="100%" {}
                        @if let Some([low, high]) = row.range {
                            @let [from, to] =
                                [low, high].map(|end| axis.percent(end.clamp(axis.low, axis.high)));
                            line.band x1=(from) x2=(to) y1="10" y2="10" {}
                        }
                        g.own { (whisker(&axis, row.ci95)) }
                        @let at = axis.percent(row.ratio.clamp(axis.low, axis.high));
                        circle cx=(at) cy="10" r="4.5" {}
                    }
                    span.value {
                        b { (words::times(row.ratio)) }
                        @if let Some(ci95) = row.ci95 { " " (words::times_range(ci95, row.ratio)) }
                    }
                }
            }
            (foot(&axis, &ticks, title))
        }
    };
    (body, cut)
}

pub(super) fn shares(legend: &[(Colour, String)], stacks: &[Stack]) -> Markup {
    let axis = Axis::linear([0.0, 100.0]);
    let ticks: Vec<(f64, String)> =
        [0.0, 25.0, 50.0, 75.0, 100.0].map(|tick| (tick, format!("{tick} %"))).into();
    let is_new = |n: usize| n == 0 || stacks[n - 1].group != stacks[n].group;
    html! {
        ul.layers { @for (colour, name) in legend {
            li { span.layer style={ "--c:" (colour.css()) } { (name) } }
        } }
        div.rows.shares {
            @for (n, stack) in stacks.iter().enumerate() {
                @if is_new(n) && !stack.group.is_empty() { p.group { (stack.group) } }
                div.row {
                    span.name { (stack.title) }
                    svg height="18" {
                        (grid(&axis, &ticks))
                        @for (colour, from, share, hover) in placed(stack) {
                            rect x=(format!("{from:.2}%")) y="1" height="15"
                                width=(format!("{share:.2}%"))
                                style={ "fill:" (colour.css()) } data-at=(n) { title { (hover) } }
                        }
                    }
                }
            }
            div.row { span.name {} svg height="16" { (labels(&axis, &ticks, 12.0)) } }
        }
    }
}

/// The parts of a whole as colour, start and size in percent, hover.
fn placed(stack: &Stack) -> Vec<(Colour, f64, f64, &str)> {
    let whole: f64 = stack.parts.iter().map(|part| part.1).sum();
    let mut from = 0.0;
    let mut all = Vec::new();
    for (colour, size, hover) in &stack.parts {
        let share = size / whole.max(1e-12) * 100.0;
        all.push((*colour, from, share, hover.as_str()));
        from += share;
    }
    all
}

/// The axis of all steps with their intervals, around 1.
pub(super) fn step_axis(rows: &[Step]) -> (Axis, Vec<(f64, String)>) {
    let ends = |row: &Step| [row.from, row.to].into_iter().chain(row.ci95.into_iter().flatten());
    let all: Vec<f64> = rows.iter().flat_map(ends).filter(|end| end.is_normal()).collect();
    Axis::of_ratios(&all)
}

/// Where a step begins and how far it goes, in percent of the axis.
pub(super) fn step_reach(axis: &Axis, row: &Step) -> [f64; 2] {
    let [from, to] = [row.from, row.to].map(|end| axis.at(end.clamp(axis.low, axis.high)) * 100.0);
    // What changes nothing is seen, too.
    [from.min(to), (to - from).abs().max(0.4)]
}

/// Changes that multiply, each from where the one before it ends: one row below the other on a
/// logarithmic axis.
pub(super) fn steps(rows: &[Step]) -> Markup {
    let (axis, ticks) = step_axis(rows);
    let ticks = axis.apart(&ticks, ROW_WIDTH);
    let one = axis.percent(1.0);
    html! {
        div.rows {
            @for (n, row) in rows.iter().enumerate() {
                div.row data-at={ "0." (n) } title=(row.hover) {
                    span.name { (row.title) }
                    svg height="20" {
                        (grid(&axis, &ticks))
                        line.one x1=(one) x2=(one) y1="0" y2="100%" {}
                        @let [left, width] = step_reach(&axis, row);
                        rect x=(format!("{left:.2}%")) y="3" height="14"
                            width=(format!("{width:.2}%")) style={ "fill:" (row.colour.css()) } {}
                        (whisker(&axis, row.ci95))
                    }
                    span.value { b { (row.shown) } " " (row.spread) }
                }
            }
            (foot(&axis, &ticks, "times, each from where the one before it ends"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_line_keeps_its_ends_and_every_spike() {
        let mut values = vec![5.0; 1000];
        (values[333], values[334], values[990]) = (0.0, 9.0, 7.0);
        let of = |values: Vec<f64>| Slices { width_s: 1.0, values, unit: "", title: String::new() };
        let kept = shaping(&of(values), 50);
        assert!(kept.len() <= 102 && kept.is_sorted(), "{kept:?}");
        assert!([0, 333, 334, 990, 999].iter().all(|n| kept.contains(n)), "{kept:?}");
        assert_eq!(shaping(&of(vec![1.0, 2.0, 3.0]), 50), [0, 1, 2], "short ones are kept whole");
        assert!(shaping(&of(Vec::new()), 50).is_empty());
    }
}
