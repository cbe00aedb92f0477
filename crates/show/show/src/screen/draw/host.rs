//! What tasks waited for and what held them back on the target's host, what was written to which
//! files, and what clients sent: a row each.

use iostrata_run::host::{LimitedRate, PressureShare, ThrottleEvidence};
use iostrata_run::{FileClass, WatchSample};
use ratatui::layout::Rect;

use super::paper::{FigureText, Paper};
use super::words;
use crate::screen::look::Look;

/// Rows of it, where there is room.
pub(crate) const ROWS: u16 = 3;

/// From this share of a limit on requests were held back, in percent.
const HELD_PCT: f64 = 90.0;

/// Draws as many rows as there are.
pub(crate) fn draw(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    let rows = [pressure(look, sample), files(sample), traffic(look, sample)];
    for (row, figures) in (at.y..at.y + at.height).zip(rows) {
        paper.figures(Rect { y: row, height: 1, ..at }, figures);
    }
}

fn pressure(look: Look, sample: &WatchSample) -> Vec<FigureText<'static>> {
    let pressure = sample.pressure.unwrap_or_default();
    let some = |share: Option<PressureShare>| {
        words::told(share.map(|share| share.some_pct), |pct| format!("{pct:.0} %"))
    };
    let mut figures = vec![
        FigureText::new("pressure  io", some(pressure.io)),
        FigureText::new("cpu", some(pressure.cpu)),
        FigureText::new("memory", some(pressure.memory)),
    ];
    let throttle = sample.throttle.as_ref();
    let used = throttle.and_then(|of| of.io_limit_used_pct);
    let limit = FigureText::new("I/O limit", words::told(used, |pct| format!("{pct:.0} %")));
    figures.push(match (throttle.and_then(bound), used) {
        (None, _) => limit,
        (Some(bound), used) => {
            let is_held = used.is_some_and(|used| used >= HELD_PCT);
            let style = if is_held { look.warning() } else { look.figure() };
            FigureText { text: format!("{} of {bound}", limit.text), ..limit }.style(style)
        }
    });
    let held = throttle.and_then(|of| of.cpu_throttled_us).map(|us| us as f64);
    figures.push(FigureText::new("quota", words::told(held, iostrata_stats::units::microseconds)));
    let stolen = words::told(sample.cpu_stolen_pct, |pct| format!("{pct:.0} %"));
    figures.push(FigureText::new("stolen", stolen));
    figures
}

/// Statements, misses of the pool, connections, and what else there is of replication and room.
fn traffic(look: Look, sample: &WatchSample) -> Vec<FigureText<'static>> {
    let count = |figure: Option<f64>| words::told(figure, iostrata_stats::units::count);
    let writes = [sample.inserts_per_s, sample.updates_per_s, sample.deletes_per_s];
    let writes = writes.into_iter().sum::<Option<f64>>();
    let misses = words::told(sample.pool_miss_pct, |pct| format!("{pct:.1} %"));
    let mut figures = vec![
        FigureText::new("reads", format!("{}/s", count(sample.selects_per_s))),
        FigureText::new("writes", format!("{}/s", count(writes))),
        FigureText::new("misses", misses),
    ];
    if let Some((now, limit)) = sample.connections.zip(sample.connections_limit) {
        let style = if 10 * now >= 9 * limit { look.warning() } else { look.figure() };
        let text = format!("{now} of {limit}");
        figures.push(FigureText::new("connections", text).style(style));
    }
    if let Some(lag_s) = sample.replica_lag_s {
        figures.push(FigureText::new("replica behind", words::length(lag_s as f64)));
    }
    if let Some(pct) = sample.flow_control_paused_pct {
        figures.push(FigureText::new("flow control", format!("{pct:.0} %")));
    }
    if let Some(free) = sample.disk_free_bytes {
        figures.push(FigureText::new("disk free", iostrata_stats::units::bytes(free as f64)));
    }
    figures
}

/// The limit that is used the most: `1.5 K writes/s`.
fn bound(throttle: &ThrottleEvidence) -> Option<String> {
    let rate = throttle.io_limit_rate?;
    let bound = throttle.io_limit.as_ref()?.bound(rate)? as f64;
    Some(match rate {
        LimitedRate::ReadBytes => format!("{}/s read", iostrata_stats::units::bytes(bound)),
        LimitedRate::WriteBytes => format!("{}/s written", iostrata_stats::units::bytes(bound)),
        LimitedRate::Reads => format!("{} reads/s", iostrata_stats::units::count(bound)),
        LimitedRate::Writes => format!("{} writes/s", iostrata_stats::units::count(bound)),
    })
}

/// What is written per second to the files of each class that is told.
fn files(sample: &WatchSample) -> Vec<FigureText<'static>> {
    let Some(files) = &sample.files else {
        return vec![FigureText::new("written", words::NOT_TOLD.to_owned())];
    };
    let written = |class: FileClass| {
        let bytes = files.class(class)?.write_bytes_per_s?;
        let text = iostrata_stats::units::bytes(bytes);
        Some(FigureText::new(class.word(), format!("{text}/s")))
    };
    let mut figures: Vec<FigureText<'static>> =
        FileClass::ALL.into_iter().filter_map(written).collect();
    if let Some(first) = figures.first_mut().filter(|first| first.name == FileClass::Data.word()) {
        first.name = "written  data";
    }
    figures
}
