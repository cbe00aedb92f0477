//! Charts as inline SVG that takes the width there is.
//!
//! Method: places along the width are percentages and everything else is in pixels, so that text,
//! lines and whiskers keep their size on a phone, a wide screen and paper. Curves are drawn in
//! a box of their own, which is stretched. Names, values and legends are ordinary text of the page.
//! Invariants: what leaves a scale is said; labels of an axis do not touch on a phone.

mod axis;
mod rows;

use iostrata_stats::Interval;
use maud::{Markup, html};

use axis::Axis;
use rows::{bars, labels, ratios, shares};

use crate::chart::{Chart, Course, Line, Lines, Mark, Plot, Scale, Stroke, reach};
use crate::words;

/// Height of lines in pixels.
const HEIGHT: f64 = 220.0;
/// Pixels that the plot of lines has on a phone.
const PLOT_WIDTH: f64 = 290.0;

/// A chart with its caption.
pub(crate) fn chart(chart: &Chart) -> Markup {
    let (body, cut) = match &chart.plot {
        Plot::Bars(axis, rows) => bars(axis, rows),
        Plot::Ratios(axis, rows) => ratios(axis, rows),
        Plot::Shares(legend, stacks) => (shares(legend, stacks), None),
        Plot::Lines(lines) => plot(lines, lines.scale),
    };
    figure(Some(format!("chart-{}", chart.name)), chart, &body, cut)
}

/// Lines on a logarithmic scale whatever their own is, for the switch of panels.
pub(crate) fn logarithmic(chart: &Chart, lines: &Lines) -> Markup {
    let (body, cut) = plot(lines, Scale::Logarithmic(None));
    figure(None, chart, &body, cut)
}

fn figure(id: Option<String>, chart: &Chart, body: &Markup, cut: Option<String>) -> Markup {
    html! {
        figure id=[id] {
            @if !chart.title.is_empty() || !chart.says.is_empty() || cut.is_some() {
                figcaption {
                    @if !chart.title.is_empty() { b { (chart.title) } }
                    (chart.says) @if let Some(cut) = cut { " " span.cut { (cut) } }
                }
            }
            @if let Plot::Lines(lines) = &chart.plot && lines.has_legend {
                (legend(lines.lines.iter().map(|line| (line.stroke, line.name.as_str()))))
            }
            (body)
        }
    }
}

/// Names of lines with colour and dash.
pub(crate) fn legend<'a>(all: impl Iterator<Item = (Stroke, &'a str)>) -> Markup {
    html! {
        ul.layers {
            @for (stroke, name) in all.filter(|(_, name)| !name.is_empty()) {
                li {
                    svg.stroke width="26" height="8" {
                        line x2="26" y1="4" y2="4" style=(ink(stroke)) {}
                    }
                    (name)
                }
            }
        }
    }
}

fn ink(stroke: Stroke) -> String {
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
fn x_axis(lines: &Lines) -> (Axis, Vec<(f64, String)>) {
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
    let ticks = axis.labelled();
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

fn plot(lines: &Lines, scale: Scale) -> (Markup, Option<String>) {
    let figures: Vec<_> = lines.lines.iter().flat_map(figures_of).collect();
    let (x, x_ticks) = x_axis(lines);
    let y = y_axis(&figures, scale);
    let x_ticks = x.apart(&x_ticks, PLOT_WIDTH);
    let cut = beyond(lines, &y);
    let body = html! {
        p.axis { (lines.y) }
        div.plot {
            svg height=(HEIGHT + 20.0) role="img" aria-label={ (lines.y) " over " (lines.x) } {
                @for (tick, label) in y.labelled() {
                    @let at = format!("{:.1}", HEIGHT * (1.0 - y.at(tick)));
                    line.grid x2="100%" y1=(at) y2=(at) {}
                    text x="-7" y=(at) dy="4" text-anchor="end" { (label) }
                }
                (labels(&x, &x_ticks, HEIGHT + 16.0))
                svg.box width="100%" height=(HEIGHT) viewBox="0 0 1000 1000"
                    preserveAspectRatio="none" {
                    @for line in &lines.lines { (course(line, &x, &y)) }
                }
                @for (n, line) in lines.lines.iter().enumerate() {
                    @for (at, mark) in points_of(line).iter().enumerate() {
                        @if y.has(mark.y) { (point(mark, line, &format!("{n}.{at}"), &x, &y)) }
                    }
                }
            }
        }
        p.axis { (lines.x) }
    };
    (body, cut)
}

/// How many figures leave the scale at either end. A law is drawn as far as it goes.
fn beyond(lines: &Lines, y: &Axis) -> Option<String> {
    let measured = lines.lines.iter().filter(|line| !matches!(line.course, Course::Fit(_)));
    let (above, below): (Vec<f64>, Vec<f64>) = measured
        .flat_map(figures_of)
        .map(|one| one.0)
        .filter(|value| !y.has(*value))
        .partition(|value| *value > y.high);
    let said = |all: &[f64], place: &str, end: f64| {
        let lie = if all.len() == 1 { "1 lies".to_owned() } else { format!("{} lie", all.len()) };
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

fn points_of(line: &Line) -> &[Mark] {
    match &line.course {
        Course::Points(marks) => marks,
        Course::Fit(_) | Course::Slices(_) => &[],
    }
}

/// A line in its stretched box.
fn course(line: &Line, x: &Axis, y: &Axis) -> Markup {
    let place = |[px, py]: [f64; 2]| {
        // Far outside is as good as outside, and no renderer stumbles over it.
        let at = (1.0 - y.at(py)).clamp(-3.0, 4.0);
        format!("{:.1},{:.1}", x.at(px) * 1000.0, at * 1000.0)
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
        // The points are the slices themselves; the page's script reads them on hover.
        Course::Slices(slices) => {
            let points: Vec<String> =
                slices.values.iter().enumerate().map(|(n, value)| format!("{n},{value}")).collect();
            let (wide, tall) = (slices.width_s * 1000.0 / x.high, 1000.0 / y.high);
            html! {
                polyline.line points=(points.join(" ")) style=(style) data-width=(slices.width_s)
                    data-unit=(slices.unit) data-name=(slices.title)
                    transform=(format!("matrix({wide} 0 0 {} 0 1000)", -tall)) {}
            }
        }
    }
}

/// A measured point with its interval.
fn point(mark: &Mark, line: &Line, at: &str, x: &Axis, y: &Axis) -> Markup {
    let top = HEIGHT * (1.0 - y.at(mark.y));
    let end = |value: f64| (HEIGHT * (1.0 - y.at(value))).clamp(0.0, HEIGHT) - top;
    let marked = line.marked.filter(|(x, _)| *x == mark.x);
    html! {
        svg x=(x.percent(mark.x)) y=(format!("{top:.1}")) overflow="visible" data-at=(at)
            style={ "--c:" (line.stroke.colour.css()) } {
            title { (mark.hover) }
            @if let Some(ci95) = mark.ci95 {
                @let [low, high] = ci95.map(end);
                path.whisker d=(format!("M0,{low:.1}V{high:.1}M-4,{low:.1}h8M-4,{high:.1}h8")) {}
            }
            circle r=(if marked.is_some() { "6" } else { "3.2" }) {}
            @if let Some((_, word)) = marked { text.marked x="8" y="16" { (word) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Branch, solid};
    use crate::colour::Colour;

    fn line(course: Course) -> Line {
        Line { name: String::new(), stroke: solid(Colour::Grey), course, marked: None }
    }

    #[test]
    fn what_leaves_a_scale_is_said_at_both_ends() {
        let mark = |(x, y)| Mark { x, y, ci95: None, hover: String::new() };
        let marks = [(1.0, 0.0), (2.0, 10.0), (3.0, 100.0)].map(mark).into();
        let law = vec![[1.0, 5_000.0], [2.0, 9_000.0]];
        let lines = vec![line(Course::Fit(law)), line(Course::Points(marks))];
        let lines = Lines::new("x", "y", lines);
        let (body, cut) = plot(&lines, Scale::Logarithmic(Some([5.0, 50.0])));
        let said = "1 lies above the scale, up to 100. 1 lies below the scale, down to 0.";
        assert_eq!(cut.as_deref(), Some(said));
        assert_eq!(body.into_string().matches("data-at=").count(), 1);
    }

    #[test]
    fn a_ratio_beyond_the_axis_is_named() {
        let row = |title: &str, ratio| Branch {
            title: title.to_owned(),
            ratio,
            ci95: None,
            range: None,
            colour: Colour::Grey,
            hover: String::new(),
        };
        let (_, cut) = ratios("times", &[row("far", 1e-4), row("near", 0.5)]);
        assert_eq!(cut.as_deref(), Some("Beyond the axis: far."));
    }
}
