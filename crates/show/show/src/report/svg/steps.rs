//! Changes that multiply, each from where the one before it ends: one row below the other on a
//! logarithmic axis, for a page and at fixed places.

use maud::{Markup, html};

use super::plot::{Axis, ROW_WIDTH, foot, grid, whisker};
use crate::report::chart::Step;

/// The axis of all steps with their intervals, around 1.
pub(super) fn axis(rows: &[Step]) -> (Axis, Vec<(f64, String)>) {
    let ends = |row: &Step| [row.from, row.to].into_iter().chain(row.ci95.into_iter().flatten());
    let all: Vec<f64> = rows.iter().flat_map(ends).filter(|end| end.is_normal()).collect();
    Axis::of_ratios(&all)
}

/// Where a step begins and how far it goes, in percent of the axis.
pub(super) fn reach(axis: &Axis, row: &Step) -> [f64; 2] {
    let [from, to] = [row.from, row.to].map(|end| axis.at(end.clamp(axis.low, axis.high)) * 100.0);
    // What changes nothing is seen, too.
    [from.min(to), (to - from).abs().max(0.4)]
}

pub(super) fn steps(rows: &[Step]) -> Markup {
    let (axis, ticks) = axis(rows);
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
                        @let [left, width] = reach(&axis, row);
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
