//! The run of a workload of transactions: how fast, how evenly, its course, its drift and its
//! stalls, at what price; and what loading its tables did.

use iostrata_plan::OpKind;
use iostrata_run::{
    DatasetGrowth, InsertFigures, InsertGrowth, LatencyTarget, RateBound, RunResult,
    TransactionDocument, TransactionDurability, TransactionLevel,
};
use iostrata_stats::{Drift, Interval, LatencyUs, Stability};

use super::common::{facts, host, latencies, method, percentiles, replicate_verdicts};
use crate::report::cell::{Text, Tone, count, empty, figure, optional, text, value, verdicts};
use crate::report::chart::{Chart, Course, Hover, Line, Lines, Mark, Plot, Scale, Slices, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, Card, On, Report, Style, Table, all_verdicts};
use crate::report::view::Head;
use crate::report::{RunView, words};

/// What is counted per second.
const RATE: &str = "transactions/s";

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Transactions(run)) = view.result else {
        return None;
    };
    let mut report = Report::new(&[], "");
    report.headline = headline(run);
    report.strip = cards(run);
    report.add("transactions", "Transactions", types(run));
    report.add("time", "Over time", over_time(run));
    report.add("rows", "Rows", run.insert.as_ref().map(inserted));
    let by = match run.latency_target {
        Some(_) => "By the rate of arrivals",
        None => "By the number of threads",
    };
    report.add("levels", by, levels(run));
    report.add("failed", "What failed", failed(run));
    report.add("target", "What it ran on", target(run));
    report.add("driver", "What driving it cost", driver(run));
    report.add("host", "The machine", host(view, None));
    let mut all = replicate_verdicts(view);
    all.extend(all_verdicts([&run.verdicts]));
    report.add("method", "How it was measured", how(run, all));
    report.kept = run.run.as_ref().map(|run| format!("The run is kept in {run}").into());
    Some((view.head(None, None).with_place(&run.target.name), report))
}

/// Speed, and how evenly it held.
fn headline(run: &TransactionDocument) -> Vec<String> {
    let tps = words::shown(run.tps, run.tps_ci95, RATE);
    if let Some(why) = tps.why {
        return vec![format!("Transactions per second {}: {why}", tps.text)];
    }
    let nopm = run.nopm.map_or(String::new(), |nopm| {
        format!(", {} new orders per minute", words::grouped(nopm as u64))
    });
    let rows = run.insert.as_ref().and_then(|insert| insert.rows_per_s);
    let rows = rows.map_or(String::new(), |rows| format!(", {}", words::value(rows, ROWS)));
    let threads = words::counted(run.threads as usize, "thread");
    let steady = run.steadiness().map(steadiness);
    let speed = format!("{}{nopm}{rows} with {threads}", tps.text);
    [Some(speed), steady].into_iter().flatten().collect()
}

fn share(ratio: f64) -> String {
    words::value(ratio * 100.0, "percent")
}

/// `The worst second had 71 % of the mean; ...`
fn steadiness(stability: &Stability) -> String {
    let down = match stability.longest_below_half_s {
        down if down > 0.0 => {
            format!("it was below half the mean for {} at a stretch", words::value(down, "s"))
        }
        _ => "it never fell below half the mean".to_owned(),
    };
    format!("The worst second had {} of the mean; {down}", share(stability.min_over_mean_1s))
}

fn cards(run: &TransactionDocument) -> Vec<Card> {
    let tps = words::shown(run.tps, run.tps_ci95, "/s");
    let half = tps.half.map_or(String::new(), |half| format!("{half}, "));
    let why = tps.why.map_or(String::new(), |why| format!("{why}; "));
    let rest = format!("{why}{half}n = {}", run.tps_n);
    let mut cards = vec![Card { title: "transactions", big: tps.text.into(), text: rest.into() }];
    if let Some(nopm) = run.nopm {
        let big = words::grouped(nopm as u64).into();
        cards.push(Card { title: "NOPM", big, text: "new orders per minute".into() });
    }
    if let Some(stability) = run.steadiness() {
        let rest =
            format!("of the mean in the worst second; variation {}", share(stability.cov_1s));
        let big = share(stability.min_over_mean_1s).into();
        cards.push(Card { title: "steadiness", big, text: rest.into() });
    }
    // The type that most of them are.
    let most = run.completed.iter().max_by_key(|(_, count)| **count);
    if let Some((kind, us)) = most.and_then(|(kind, _)| Some((kind, run.latency_us.get(kind)?))) {
        let p99 = |us: &LatencyUs| words::value(us.p99, "us");
        let response = run.response_us.as_ref().and_then(|all| all.get(kind));
        let rest = response.map_or(String::new(), |us| format!("; {} from schedule", p99(us)));
        let rest = format!("99th percentile of {}{rest}", kind.plural());
        cards.push(Card { title: "latency", big: p99(us).into(), text: rest.into() });
    }
    cards
}

/// Mix, counts and latencies by type, and what speaks against them.
fn types(run: &TransactionDocument) -> Blocks {
    let mut body = Blocks::new();
    body.table(On::ALL, by_type(run));
    let warm_up = match run.warm_up_s {
        warm_up_s if warm_up_s > 0.0 => {
            format!(" after {} of warm-up", words::value(warm_up_s, "s"))
        }
        _ => String::new(),
    };
    let mut effort = format!("{} measured{warm_up}", words::value(run.duration_s, "s"));
    if run.retries > 0 {
        effort.push_str(&format!(", begun again {} times", words::grouped(run.retries)));
    }
    if let Some(late) = run.start_lateness_us_p99 {
        effort.push_str(&format!(", start lateness p99 {}", words::value(late, "us")));
    }
    body.note(effort);
    if let Some(arrivals) = run.arrivals {
        body.note(format!(
            "{} arrived by the schedule, {} were dropped, {} still waited at the end",
            words::grouped(arrivals),
            words::grouped(run.dropped),
            words::grouped(run.waiting)
        ));
    }
    for one in &run.unknown {
        let why = words::because(one.why, one.between, None, &one.unit);
        let words = format!("{} unknown: {why}", one.title);
        body.add(On::ALL, Block::Text(Style::Note(Tone::Warn), words.into()));
    }
    if !run.verdicts.is_sound() {
        body.add(On::ALL, Block::Verdicts(run.verdicts.iter().collect()));
    }
    for note in &run.notes {
        body.note(note.as_str());
    }
    body
}

fn by_type(run: &TransactionDocument) -> Table {
    let mut rows: Vec<(Text, OpKind, Option<LatencyUs>, bool)> = Vec::new();
    for (kind, completed) in &run.completed {
        let service = run.latency_us.get(kind).copied().unwrap_or_default();
        let response = run.response_us.as_ref().and_then(|all| all.get(kind)).copied();
        for (us, is_service) in latencies(*completed > 0, service, response) {
            let name = match is_service {
                true => Text::default().strong(kind.plural()),
                // It stands below its type.
                false => Text::from("from schedule"),
            };
            rows.push((name, *kind, us, is_service));
        }
    }
    let completed = |kind: &OpKind| count(run.completed.get(kind).copied().unwrap_or(0));
    let share = |kind: &OpKind| optional(run.mix.get(kind).map(|of| of * 100.0), "percent");
    let table = Table::of(rows)
        .words("", |(name, ..)| text(name.clone()))
        .numbers("completed", |(_, kind, _, own)| if *own { completed(kind) } else { empty() })
        .numbers("share", |(_, kind, _, own)| if *own { share(kind) } else { empty() })
        .numbers("mean", |(_, _, us, _)| optional(us.map(|us| us.mean), "us"));
    let table = percentiles(table, |(_, _, us, _)| *us);
    table.numbers("max", |(_, _, us, _)| optional(us.map(|us| us.max), "us")).into()
}

/// A staircase: throughput and latency by threads, with the knee.
fn levels(run: &TransactionDocument) -> Option<Blocks> {
    if run.levels.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    let lead = match (&run.latency_target, run.knee_threads) {
        (Some(target), _) => searched(target),
        (None, Some(threads)) => format!(
            "{threads} threads give nearly all the throughput there is; more only lengthen the \
             wait."
        ),
        (None, None) => {
            "Throughput still rose at the last level: its knee lies at or beyond it.".into()
        }
    };
    body.add(On::ALL, Block::Text(Style::Lead(Tone::Plain), lead.into()));
    if run.latency_target.is_some() {
        body.table(On::ALL, by_rate(&run.levels));
        return Some(body);
    }
    let marked = run.knee_threads.map(|threads| (f64::from(threads), "knee"));
    let line = |unit: &str, colour, of: &dyn Fn(&TransactionLevel) -> Hover<'static>| {
        let mark = |level: &TransactionLevel| {
            let title = words::counted(level.threads as usize, "thread");
            let hover = Hover { title: &title, verdicts: Some(&level.verdicts), ..of(level) };
            hover.mark(f64::from(level.threads))
        };
        let marks: Vec<Mark> = run.levels.iter().map(mark).collect();
        let stroke = solid(Colour::Line(colour));
        let line = Line { name: String::new(), stroke, course: Course::Points(marks), marked };
        Plot::Lines(Lines::new("threads", unit, vec![line]))
    };
    let rate = line(RATE, 0, &|level| Hover {
        title: "",
        value: level.tps,
        unit: RATE,
        ci95: level.tps_ci95,
        n: level.tps_n,
        verdicts: None,
    });
    let latency = line("99th percentile of latency, us", 1, &|level| Hover {
        title: "",
        value: level.latency_us.p99,
        unit: "us",
        ci95: None,
        n: level.tps_n,
        verdicts: None,
    });
    body.chart(Chart::new("levels", "Throughput", rate));
    body.chart(Chart::new("levels-latency", "Latency", latency));
    body.table(On::ALL, by_level(&run.levels));
    Some(body)
}

/// What the search for a rate came to.
fn searched(target: &LatencyTarget) -> String {
    let objective = format!(
        "p{} of response time within {}",
        target.percentile,
        words::value(target.target_us, "us")
    );
    let between = words::interval(target.rate_per_s_between, None, RATE);
    let ended = match target.bound {
        RateBound::Objective => "",
        RateBound::Capacity => ", the upper of which is the capacity",
        RateBound::Time => ". The time of the run was over before this could be narrowed down",
        RateBound::Ended => ". The run ended before this could be narrowed down",
    };
    let was = target.response_us.map_or(String::new(), |response_us| {
        format!(" (measured: {})", words::value(response_us, "us"))
    });
    match target.rate_per_s {
        Some(rate) => format!(
            "{} hold {objective}{was}. The highest rate that does is within {between}{ended}.",
            words::value(rate, RATE)
        ),
        None => format!(
            "No rate that was tried holds {objective}. One that does could only be within \
             {between}{ended}."
        ),
    }
}

/// The levels of a search, in the order in which they were tried.
fn by_rate(levels: &[TransactionLevel]) -> Table {
    let due = |level: &&TransactionLevel| match level.rate_per_s {
        Some(rate) => value(rate, "/s"),
        None => text("no schedule"),
    };
    let holds = |level: &&TransactionLevel| match level.holds_target {
        Some(true) => text("held"),
        Some(false) => text("missed"),
        None => empty(),
    };
    let response = |level: &&TransactionLevel| optional(level.response_us.map(|us| us.p99), "us");
    Table::of(levels)
        .numbers("due", due)
        .numbers("rate", |level| figure(level.tps, level.tps_ci95, level.tps_n, "/s"))
        .numbers("p99", |level| value(level.latency_us.p99, "us"))
        .numbers("p99 from schedule", response)
        .words("objective", holds)
        .numbers("failed", |level| count(level.errors))
        .numbers_on(On::FILES, "CPU each", |level| optional(level.us_per_txn, "us"))
        .words_on(On::FILES, "Cautions", |level| verdicts(&level.verdicts))
        .into()
}

fn by_level(levels: &[TransactionLevel]) -> Table {
    let worst = |level: &&TransactionLevel| {
        optional(level.steadiness().map(|one| one.min_over_mean_1s * 100.0), "percent")
    };
    Table::of(levels)
        .numbers("threads", |level| count(u64::from(level.threads)))
        .numbers("rate", |level| figure(level.tps, level.tps_ci95, level.tps_n, "/s"))
        .numbers("worst second", worst)
        .numbers("mean", |level| value(level.latency_us.mean, "us"))
        .numbers("p99", |level| value(level.latency_us.p99, "us"))
        .numbers("failed", |level| count(level.errors))
        .numbers_on(On::FILES, "CPU each", |level| optional(level.us_per_txn, "us"))
        .words_on(On::FILES, "Cautions", |level| verdicts(&level.verdicts))
        .into()
}

fn failed(run: &TransactionDocument) -> Option<Blocks> {
    let mut body = Blocks::new();
    let table = Table::of(&run.errors)
        .words("code", |(code, _)| text(code.as_str()))
        .numbers("failed", |(_, failed)| count(**failed));
    body.add(
        On::ALL,
        Block::Text(Style::Note(Tone::Warn), "None of these is counted as completed.".into()),
    );
    body.table(On::ALL, table);
    (!run.errors.is_empty()).then_some(body)
}

fn target(run: &TransactionDocument) -> Blocks {
    let mut all = vec![("target".to_owned(), run.target.name.clone())];
    let version = format!("{} {}", run.target.flavour, run.target.version);
    all.push(("server or engine".to_owned(), version.trim().to_owned()));
    all.push(("isolation".to_owned(), run.isolation.clone()));
    all.extend(durability(&run.durability));
    let mut body = Blocks::new();
    body.add(On::ALL, facts(all));
    if !run.deviations.is_empty() {
        body.title(On::ALL, "How it differs from the specification");
        body.add(
            On::ALL,
            Block::List(run.deviations.iter().map(|one| one.as_str().into()).collect()),
        );
    }
    body
}

fn durability(of: &TransactionDurability) -> Vec<(String, String)> {
    let yes = |on: bool| if on { "on" } else { "off" }.to_owned();
    let all = [
        ("redo flushed at commit", of.flush_log_at_commit.map(|mode| mode.to_string())),
        ("doublewrite", of.doublewrite.clone()),
        ("flush method", of.flush_method.clone()),
        ("binary log", of.binlog.map(yes)),
        ("sync_binlog", of.sync_binlog.map(|every| every.to_string())),
    ];
    let known = |(name, what): (&str, Option<String>)| Some((name.to_owned(), what?));
    all.into_iter().filter_map(known).collect()
}

fn driver(run: &TransactionDocument) -> Blocks {
    let driver = &run.driver;
    let each = |of: Option<f64>, unit: &str| {
        of.map_or_else(|| "unknown".to_owned(), |of| words::value(of, unit))
    };
    let all = vec![
        ("CPU in all".to_owned(), words::value(driver.cpu_s, "s")),
        ("CPU per transaction".to_owned(), each(driver.us_per_txn, "us")),
        ("round trips per transaction".to_owned(), each(driver.round_trips_per_txn, "")),
        ("statements per transaction".to_owned(), each(driver.statements_per_txn, "")),
    ];
    let mut body = Blocks::new();
    body.say(
        "Processor time of the threads that drive the load. An embedded engine works in them, so \
         that its own time is included.",
    );
    body.add(On::ALL, facts(all));
    body
}

fn how(
    run: &TransactionDocument,
    all: std::collections::BTreeSet<iostrata_stats::Verdict>,
) -> Blocks {
    let mut body = Blocks::new();
    if run.nopm.is_some() {
        body.say(
            "This load is like TPC-C and no TPC-C result: new orders per minute are counted as its \
             specification has it, specified rollbacks included, and may be compared with nothing \
             that is called tpmC.",
        );
    }
    body.say(
        "A transaction is counted when its commit is durable as far as the target's settings make \
         it so, and its latency runs until then. Latency from schedule begins when the transaction \
         was due, so that a stall is felt by all that it kept waiting.",
    );
    body.0.extend(method(false, all).0);
    body
}

/// What is counted per second.
pub(super) const ROWS: &str = "rows/s";
const GIB: f64 = (1_u64 << 30) as f64;

/// The rate over time and over the size of the indexes, and what the table came to.
fn inserted(insert: &InsertFigures) -> Blocks {
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

/// The axis of sizes: of the indexes where they are known, else of the table.
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

fn percent_of(ratio: f64) -> String {
    words::value(ratio * 100.0, "percent")
}

/// The rate second by second, and how evenly it held.
pub(super) fn over_time(run: &TransactionDocument) -> Option<Blocks> {
    let mut body = Blocks::new();
    let seconds = &run.series;
    if let Some(width_s) = seconds.t_s.first().copied() {
        let course = Course::Slices(Slices {
            width_s,
            values: seconds.tps.clone(),
            unit: RATE,
            title: run.workload.clone(),
        });
        let line =
            Line { name: String::new(), stroke: solid(Colour::Line(0)), course, marked: None };
        let lines = Lines::new("seconds in the measured window", RATE, vec![line]);
        let plot = Plot::Lines(Lines { scale: Scale::Linear, ..lines });
        body.chart(Chart::new("time-transactions", "", plot).says(
            "Completed transactions per second. A stall of flushing or of the redo log is a hole \
             in this line, whatever the mean is.",
        ));
    }
    if run.stability.is_some() && run.steadiness().is_none() {
        body.say("A second has too few transactions to judge steadiness by.");
    }
    if let Some(stability) = run.steadiness() {
        body.say(
            "Steadiness is taken from windows of one and of two seconds that slide by a tenth of a \
             second, so that a hole between two whole seconds counts as well.",
        );
        let two = stability
            .min_over_mean_2s
            .map(|ratio| ("worst two seconds, of the mean".to_owned(), percent_of(ratio)));
        let down = match stability.longest_below_half_s {
            down if down > 0.0 => words::value(down, "s"),
            _ => "never".to_owned(),
        };
        let all = [
            Some(("worst second, of the mean".to_owned(), percent_of(stability.min_over_mean_1s))),
            two,
            Some(("variation between seconds".to_owned(), percent_of(stability.cov_1s))),
            Some(("longest below half the mean".to_owned(), down)),
        ];
        // A terminal has them in the headline.
        body.add(On::FILES, facts(all.into_iter().flatten().collect()));
    }
    if let Some(drift) = &run.drift {
        let on = if drift.is_significant() { On::ALL } else { On::FILES };
        body.add(on, Block::Text(Style::Say, drifted(drift).into()));
    }
    if let Some(grown) = run.dataset.as_ref().and_then(grown) {
        body.say(grown);
    }
    stalls(run, &mut body);
    let has_any = !seconds.tps.is_empty() || run.stability.is_some();
    has_any.then_some(body)
}

/// `The last third of the window was 12 % slower than the first ...`
fn drifted(drift: &Drift) -> String {
    let is_slower = drift.change_pct < 0.0;
    // "Slower by" takes a number without its sign.
    let shown = |[low, high]: Interval| match is_slower && drift.is_significant() {
        true => [-high, -low],
        false => [low, high],
    };
    let interval = drift.change_pct_ci95.map_or(String::new(), |interval| {
        format!(" (95 %: {})", words::interval(shown(interval), Some(drift.change_pct), "percent"))
    });
    let (first, last) = (words::value(drift.first_tps, RATE), words::value(drift.last_tps, RATE));
    if !drift.is_significant() {
        return format!(
            "No drift can be told from noise: {first} in the first third, {last} in the last, a \
             change of {}{interval}.",
            words::value(drift.change_pct, "percent")
        );
    }
    let way = if is_slower { "slower" } else { "faster" };
    format!(
        "The last third of the window was {} {way} than the first{interval}: {first} became {last}.",
        words::value(drift.change_pct.abs(), "percent")
    )
}

/// `Orders grew from ... to ...; the files from ... to ...`
fn grown(of: &DatasetGrowth) -> Option<String> {
    let from_to = |before: Option<u64>, after: Option<u64>, unit: &str| {
        let shown = |count: u64| match unit {
            "" => words::grouped(count),
            unit => words::value(count as f64, unit),
        };
        let (before, after) = (shown(before?), shown(after?));
        (before != after).then(|| format!("{before} to {after}"))
    };
    let orders = from_to(of.orders_before, of.orders_after, "");
    let bytes = from_to(of.bytes_before, of.bytes_after, "bytes");
    let all = [
        orders.map(|text| format!("orders from {text}")),
        bytes.map(|text| format!("files from {text}")),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("The tables grew: {}.", all.join(", ")))
}

/// Every time below half the mean with its cause, and what finding the causes cost.
fn stalls(run: &TransactionDocument, body: &mut Blocks) {
    if !run.stalls.is_empty() {
        let table = Table::of(&run.stalls)
            .numbers("stall at", |stall| value(stall.t_s, "s"))
            .numbers("length", |stall| value(stall.length_s, "s"))
            .numbers("worst second", |stall| value(stall.min_tps, "/s"))
            .words("cause", |stall| text(stall.cause.to_string()))
            .words_on(On::FILES, "what speaks for it", |stall| text(stall.evidence.as_str()));
        body.table(On::ALL, table);
    }
    if let Some(cost) = &run.sampler {
        let failed = match cost.failed {
            0 => String::new(),
            failed => format!(", of which {failed} failed"),
        };
        body.say(format!(
            "The target was sampled {}{failed}; a sample took {} on average, at most {}.",
            iostrata_stats::units::times(cost.samples),
            words::value(cost.sample_us_mean, "us"),
            words::value(cost.sample_us_max, "us")
        ));
    }
}

pub(super) fn prepare_report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Prepare(prepared)) = view.result else { return None };
    let mut report = Report::new(&[], "");
    let size = format!("{} {}", prepared.size, prepared.size_unit);
    report.headline = vec![format!("{size} of {} on {}", prepared.workload, prepared.target)];
    let rows = words::value(prepared.rows as f64, "rows");
    let before = match prepared.rows_before {
        0 => String::new(),
        before => format!("; {} were there", words::value(before as f64, "rows")),
    };
    let speed = words::value(prepared.rows_per_s, "rows/s");
    let text = format!("in {}, {speed}{before}", words::value(prepared.duration_s, "s"));
    report.strip = vec![Card { title: "loaded", big: rows.into(), text: text.into() }];
    Some((view.head(None, None), report))
}
