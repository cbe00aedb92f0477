//! Charts as inline SVG that takes the width there is.
//!
//! Method: places along the width are percentages and everything else is in pixels, so that text,
//! lines and whiskers keep their size on a phone, a wide screen and paper. Curves are drawn in a
//! box of their own, which is stretched. Names, values and legends are ordinary text of the page.
//! Invariants: what leaves a scale is stated; labels of an axis do not touch on a phone.

mod picture;
mod plot;
mod sheet;

use maud::{Markup, html};

use plot::{Canvas, Drawing, bars, ink, ratios, shares, steps};

use crate::report::chart::{Chart, Lines, Plot, Scale, Stroke};

pub(crate) use picture::picture;
pub(crate) use sheet::sheet;

/// The plot of lines in a page; its narrowest is a phone's.
const PAGE: Canvas = Canvas {
    height: 220.0,
    width: 290.0,
    steps: [5.0; 2],
    inner: [1000.0; 2],
    names_unit: false,
    columns: None,
};

/// A chart with its caption.
pub(crate) fn chart(chart: &Chart) -> Markup {
    let (body, cut) = match &chart.plot {
        Plot::Bars(axis, rows) => bars(axis, rows),
        Plot::Steps(rows) => (steps(rows), None),
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

fn plot(lines: &Lines, scale: Scale) -> (Markup, Option<String>) {
    let drawing = Drawing::new(lines, scale, &PAGE);
    let body = html! {
        p.axis { (lines.y) }
        div.plot {
            svg height=(PAGE.height + 20.0) role="img" aria-label={ (lines.y) " over " (lines.x) } {
                (drawing.markup(""))
            }
        }
        p.axis { (lines.x) }
    };
    (body, drawing.beyond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::{Branch, Course, Line, Mark, solid};
    use crate::report::colour::Colour;

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
