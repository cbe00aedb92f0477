//! Two points of studies next to each other: figures, profiles, waits and latencies, by name.
//!
//! Invariant: what one point lacks stays blank; no difference is made here.

use iostrata_plan::OpKind;
use iostrata_run::StudyPoint;
use iostrata_run::host::{OffCpuWait, PathSegment, ProfileDiff, SegmentTimes, ShareDiff};
use iostrata_stats::Interval;

use crate::report::PointDiff;
use crate::report::cell::{
    Cell, Text, Tone, What, code, count, figure, interval, optional, text, value,
};
use crate::report::document::{Block, Blocks, On, Style, Table, TableOf};
use crate::report::words;

/// Functions and waits that a terminal shows.
const SYMBOLS: usize = 15;
const WAITS: usize = 10;

/// The title, and everything below it.
pub(crate) fn document(diff: &PointDiff<'_>) -> (String, Blocks) {
    let mut body = Blocks::new();
    let both = [("A ", diff.a), ("B ", diff.b)];
    let named = both.map(|(letter, (label, point))| {
        Text::default().strong(letter.trim()).plain(format!(" {label}: {}", point.title))
    });
    body.add(On::ALL, Block::List(named.into()));
    body.table(On::ALL, pairs(figures(diff)));
    match diff.profile {
        Some(profile) => on_cpu(&mut body, profile),
        None => {
            let none = "On-CPU: not both points have a profile.";
            body.add(On::ALL, Block::Text(Style::Plain, none.into()));
        }
    }
    let waits = waits(diff);
    if !waits.rows.is_empty() {
        body.title(On::ALL, "Off-CPU waits, longest first").table(On::ALL, waits);
    }
    let path = path(diff);
    if !path.is_empty() {
        body.title(On::ALL, "Latency by layer, mean").table(On::ALL, pairs(path));
    }
    (format!("{} and {}", diff.a.0, diff.b.0), body)
}

/// A figure of both points.
type Pair = (String, [Cell; 2]);

fn pairs(rows: Vec<Pair>) -> Table {
    Table::of(rows)
        .words("", |(name, _)| text(name))
        .numbers("A", |(_, both)| both[0].clone())
        .numbers("B", |(_, both)| both[1].clone())
        .into()
}

/// Figures, latencies, device and processors.
fn figures(diff: &PointDiff<'_>) -> Vec<Pair> {
    let mut rows = Vec::new();
    let mut add = |name: &str, of: &dyn Fn(&StudyPoint) -> Option<Cell>| {
        let both = [diff.a.1, diff.b.1].map(|point| of(point).unwrap_or_default());
        if both.iter().any(|cell| !matches!(cell.what, What::Empty)) {
            rows.push((name.to_owned(), both));
        }
    };
    add("value", &|p| Some(figure(p.value, p.value_ci95, p.value_n, &p.unit)));
    add("95 % interval", &|p| Some(interval(p.value, Some(p.value_ci95?), &p.unit)));
    add("n", &|p| Some(count(p.value_n)));
    for kind in OpKind::ALL {
        let name = kind.plural();
        add(&format!("{name}, mean"), &|p| {
            let op = p.ops[kind].as_ref()?;
            Some(figure(op.latency_us.mean, op.latency_us_mean_ci95, op.iops_n, "us"))
        });
        add(&format!("{name}, p99"), &|p| Some(value(p.ops[kind].as_ref()?.latency_us.p99, "us")));
    }
    add("CPU per request", &|p| Some(value(p.cpu_ns_per_io?, "ns")));
    add("switches per request", &|p| Some(value(p.switches_per_io?, "")));
    add("processors, system", &|p| Some(value(p.cpu.as_ref()?.system_pct, "percent")));
    add("processors, idle", &|p| Some(value(p.cpu.as_ref()?.idle_pct, "percent")));
    add("device, aqu-sz", &|p| Some(value(p.device.as_ref()?.queue_size, "")));
    add("device, %util", &|p| Some(value(p.device.as_ref()?.util_pct, "percent")));
    add("verdicts", &|p| Some(text(words::verdicts(&p.verdicts))));
    rows
}

fn on_cpu(body: &mut Blocks, profile: &ProfileDiff) {
    let title =
        format!("On-CPU, percent of all samples ({} and {})", profile.samples_a, profile.samples_b);
    body.title(On::ALL, title);
    body.say("Differences are in points with their 95 % interval, bold where it leaves out 0.");
    let layers = Table::of(&profile.layers).words("layer", |row| text(row.layer.title()));
    body.table(On::ALL, shares(layers, |row| row.share));
    body.title(On::ALL, "Functions, largest differences first");
    let symbols = Table::of(&profile.symbols)
        .words("function", |row| code(&row.symbol))
        .words("DSO", |row| code(&row.module))
        .most(SYMBOLS);
    body.table(On::ALL, shares(symbols, |row| row.share));
    for note in &profile.notes {
        body.note(note.as_str());
    }
}

/// `7.8  56.8  +49.0  [+48.4, +49.6]`
fn shares<T>(table: TableOf<T>, of: impl Fn(&T) -> ShareDiff) -> TableOf<T> {
    let points = |share: ShareDiff| {
        let points = format!("{:+.1}", share.points);
        if share.is_significant { Text::default().strong(points) } else { points.into() }
    };
    let range = |[low, high]: Interval| text(format!("[{low:+.1}, {high:+.1}]"));
    table
        .numbers("A", |row| text(format!("{:.1}", of(row).pct_a)))
        .numbers("B", |row| text(format!("{:.1}", of(row).pct_b)))
        .numbers("points", |row| text(points(of(row))))
        .numbers("95 %", |row| range(of(row).points_ci95))
        .each(|row, shown| {
            shown.tone = if of(row).is_significant { Tone::Plain } else { Tone::Dim };
        })
}

/// The waits of both points, the longest of either first.
fn waits(diff: &PointDiff<'_>) -> Table {
    type Both<'a> = [Option<&'a OffCpuWait>; 2];
    let mut all: Vec<(&OffCpuWait, Both<'_>)> = Vec::new();
    for (side, point) in [diff.a.1, diff.b.1].into_iter().enumerate() {
        let off = point.profile.as_ref().and_then(|profile| profile.off_cpu.as_ref());
        for wait in off.iter().flat_map(|off| &off.waits) {
            let key =
                |one: &OffCpuWait| (one.symbol.clone(), one.caller.clone(), one.layer.title());
            let at = all.iter().position(|(one, _)| key(one) == key(wait)).unwrap_or_else(|| {
                all.push((wait, [None, None]));
                all.len() - 1
            });
            all[at].1[side] = Some(wait);
        }
    }
    let longest =
        |both: &Both<'_>| both.iter().flatten().map(|one| one.total_us).fold(0.0, f64::max);
    all.sort_by(|one, two| longest(&two.1).total_cmp(&longest(&one.1)));
    let caller = |wait: &OffCpuWait| wait.caller.as_ref().map(code);
    let mut table = Table::of(all)
        .words("waits in", |(wait, _)| code(&wait.symbol))
        .words("asked by", |(wait, _)| caller(wait).unwrap_or_default());
    for (n, letter) in ["A", "B"].into_iter().enumerate() {
        table = table
            .numbers(&format!("total {letter}"), |(_, both)| {
                optional(both[n].map(|one| one.total_us), "us")
            })
            .numbers(&format!("mean {letter}"), |(_, both)| {
                optional(both[n].map(|one| one.mean_us), "us")
            })
            .numbers_on(On::MARKDOWN, &format!("waits {letter}"), |(_, both)| {
                both[n].map(|one| count(one.count)).unwrap_or_default()
            });
    }
    table.words("for", |(wait, _)| text(wait.layer.title())).most(WAITS).into()
}

/// Mean latency by layer of reads and writes in both points.
fn path(diff: &PointDiff<'_>) -> Vec<Pair> {
    let mut rows = Vec::new();
    for (name, is_read) in [("reads", true), ("writes", false)] {
        for segment in PathSegment::ALL {
            let times = |point: &StudyPoint| -> Option<SegmentTimes> {
                let found = point.latency_by_layer.as_ref()?.segment(segment)?;
                if is_read { found.reads } else { found.writes }
            };
            let both = [diff.a.1, diff.b.1].map(times);
            if both.iter().any(Option::is_some) {
                let both = both.map(|one| optional(one.map(|one| one.latency_us.mean), "us"));
                rows.push((format!("{name}, {}", words::segment(segment)), both));
            }
        }
    }
    rows
}
