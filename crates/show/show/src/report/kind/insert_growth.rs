//! Rows that a run inserted: how fast, while how much was there.

use iostrata_run::{InsertFigures, InsertGrowth};

use super::common::facts;
use crate::report::chart::{Chart, Course, Hover, Line, Lines, Mark, Plot, Scale, solid};
use crate::report::colour::Colour;
use crate::report::document::{Blocks, On};
use crate::report::words;

/// What is counted per second.
pub(super) const ROWS: &str = "rows/s";
const GIB: f64 = (1_u64 << 30) as f64;

/// The rate over time and over the size of the indexes, and what the table came to.
pub(super) fn inserted(insert: &InsertFigures) -> Blocks {
    let InsertFigures { rows_per_commit, storage_engine, growth, .. } = insert;
    let mut body = Blocks::new();
    let rows = insert.rows_per_s.map(|rows_per_s| {
        let shown = words::shown(rows_per_s, insert.rows_per_s_ci95, ROWS);
        ("rows per second".to_owned(), shown.text)
    });
    let last = |bytes: &Option<Vec<Option<u64>>>| bytes.as_ref()?.iter().rev().find_map(|of| *of);
    let size = |name: &str, bytes: Option<u64>| {
        Some((name.to_owned(), words::value(bytes? as f64, "bytes")))
    };
    let all = [
        rows,
        Some(("rows per commit".to_owned(), words::grouped(u64::from(*rows_per_commit)))),
        storage_engine.as_ref().map(|engine| ("storage engine".to_owned(), engine.clone())),
        growth.rows.last().map(|rows| ("rows at the end".to_owned(), words::grouped(*rows))),
        size("indexes at the end", last(&growth.index_bytes)),
        size("table at the end", last(&growth.table_bytes)),
    ];
    body.add(On::ALL, facts(all.into_iter().flatten().collect()));
    if growth.t_s.len() < 2 {
        return body;
    }
    body.chart(Chart::new("insert-time", "", over("seconds", &growth.t_s, growth)));
    if let Some((axis, sizes)) = sizes(growth) {
        let says = "Rows per second while the table was as large as the axis says. A fall means \
                    that pages of the indexes no longer stay in memory.";
        body.chart(Chart::new("insert-size", "", over(axis, &sizes, growth)).says(says));
    }
    body
}

/// The axis of sizes: of the indexes where they are told, else of the table.
fn sizes(growth: &InsertGrowth) -> Option<(&'static str, Vec<f64>)> {
    let all = |bytes: &Option<Vec<Option<u64>>>| -> Option<Vec<f64>> {
        bytes.as_ref()?.iter().map(|bytes| Some((*bytes)? as f64 / GIB)).collect()
    };
    let of_indexes = all(&growth.index_bytes).map(|sizes| ("GiB of indexes", sizes));
    of_indexes.or_else(|| Some(("GiB of table and indexes", all(&growth.table_bytes)?)))
}

fn over(axis: &str, places: &[f64], growth: &InsertGrowth) -> Plot {
    let entries = places.iter().zip(&growth.rows_per_s).zip(&growth.rows).zip(&growth.threads);
    let mark = |(((x, rate), rows), threads): (((&f64, &f64), &u64), &u32)| {
        let threads = words::counted(*threads as usize, "thread");
        let title = format!("{} rows, {threads}", words::grouped(*rows));
        let hover =
            Hover { title: &title, value: *rate, unit: ROWS, ci95: None, n: 1, verdicts: None };
        hover.mark(*x)
    };
    let marks: Vec<Mark> = entries.map(mark).collect();
    let course = Course::Points(marks);
    let line = Line { name: String::new(), stroke: solid(Colour::Line(0)), course, marked: None };
    Plot::Lines(Lines { scale: Scale::Linear, ..Lines::new(axis, ROWS, vec![line]) })
}
