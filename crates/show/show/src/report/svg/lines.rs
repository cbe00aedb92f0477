//! Lines over their axes: the scales, and what stands between them.
//!
//! Invariant: a page keeps every slice of time, since its script reads them on hover; a sheet, at
//! which nobody can point, keeps those that shape the line.

use iostrata_stats::Interval;
use maud::{Markup, html};

use super::axis::Axis;
use super::rows::labels;
use crate::report::chart::{Course, Line, Lines, Mark, Scale, Slices, Stroke, reach};
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
    /// Columns that a reader can tell apart; nothing where every slice is kept.
    pub(super) columns: Option<usize>,
}

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
            @for (tick, label) in y.labelled(canvas.steps[1]) {
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
                    @if y.has(mark.y) { (self.point(mark, line, &format!("{n}.{at}"))) }
                }
            }
        }
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
                @if let Some((_, word)) = marked { text.marked x="8" y="16" { (word) } }
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
    let ticks = axis.labelled(steps);
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
