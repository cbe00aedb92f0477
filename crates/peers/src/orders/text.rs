//! The tables of the orders as text.

use iostrata_stats::units::count;

use super::Way;
use super::figures::{OrdersTable, Parts, Sample, SoakTable, WayTable, median};
use crate::engines::Engine;
use crate::table;

/// One line of progress.
pub fn line(way: Way, engine: Engine, sample: &Sample) -> String {
    let Sample { rate, cpu_us, retries_per_1000, .. } = sample;
    let parts = sample.parts.as_ref().map_or(String::new(), |parts| format!(", {}", spent(parts)));
    format!(
        "orders   {engine:<11} {way:?}: {rate:.0} transactions/s, {cpu_us:.1} us of CPU each, \
         {retries_per_1000:.2} of 1000 begun anew{parts}"
    )
}

/// One line of progress.
pub fn stock_line(threads: usize, is_writing: bool, sample: &Sample) -> String {
    let what = if is_writing { "updates" } else { "reads" };
    format!("soak     {threads} threads: {:.0} {what}/s", sample.rate)
}

fn spent(parts: &Parts) -> String {
    let Parts { rows_us, commit_us, cleaner_us, purge_us, redo_bytes, syncs, history_max } = parts;
    format!(
        "applying {rows_us:.1} us, commit {commit_us:.1} us, cleaner {cleaner_us:.1} us, purge \
         {purge_us:.1} us, {redo_bytes:.0} bytes of redo, {syncs:.3} syncs, history at most \
         {history_max}"
    )
}

/// Both ways with their heads.
pub fn text(found: &OrdersTable) -> String {
    found.ways.iter().map(|way| way_text(way, found.disk.as_deref())).collect()
}

fn way_text(found: &WayTable, disk: Option<&str>) -> String {
    let what = match found.way {
        Way::Tickets => {
            "34 operations on rows, 18 of them writes; 2 threads with 8 unsettled tickets each, \
             peers 16 threads"
        }
        Way::Blocking => "34 operations on rows, 18 of them writes; 2 threads, each waits",
    };
    let mut text = table::head("orders", disk, what);
    let heads =
        ["engine", "tx/s", "least", "most", "CPU us", "device B", "anew/1000", "ours/it", ""];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    for (at, (engine, samples)) in found.engines.iter().enumerate() {
        let of = |figure: fn(&Sample) -> f64| samples.iter().map(figure);
        let rates = || of(|sample| sample.rate);
        let device = median(of(|sample| sample.device_bytes.unwrap_or(f64::NAN)));
        cells.push(vec![
            engine.name().to_owned(),
            count(median(rates())),
            count(rates().fold(f64::INFINITY, f64::min)),
            count(rates().fold(0.0, f64::max)),
            format!("{:.1}", median(of(|sample| sample.cpu_us))),
            if device.is_nan() { "-".to_owned() } else { count(device) },
            format!("{:.2}", median(of(|sample| sample.retries_per_1000))),
            found.ratio(at).map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            String::new(),
        ]);
    }
    text += &table::aligned(&cells);
    for (engine, samples) in &found.engines {
        let middle = samples.get(samples.len() / 2).and_then(|sample| sample.parts.as_ref());
        if let Some(parts) = middle {
            text += &format!("{engine}, each transaction of the middle round: {}\n", spent(parts));
        }
    }
    text + "\n"
}

/// The soak with its head.
pub fn soak(found: &SoakTable) -> String {
    let what = "our engine takes orders for a long time, 2 threads with 8 unsettled tickets each";
    let mut text = table::head("soak", found.disk.as_deref(), what);
    let Sample { rate, cpu_us, thirds, memory_mib, .. } = &found.soak;
    let drift = (thirds[2] / thirds[1].max(1e-9) - 1.0) * 100.0;
    text += &format!(
        "{rate:.0} transactions/s, {cpu_us:.1} us of CPU each\n\
         thirds {:.0}, {:.0}, {:.0}: the last over the second {drift:+.1} %\n\
         memory {memory_mib:?} MiB at the ends of the thirds\n",
        thirds[0], thirds[1], thirds[2],
    );
    if let Some(parts) = &found.soak.parts {
        text += &format!("each transaction: {}\n", spent(parts));
    }
    for (what, is_writing) in [("point reads", false), ("settled updates", true)] {
        let [one, two] = found.scaling.rates(is_writing);
        let ratio = two / one.max(1e-9);
        text += &format!(
            "{what}: {}/s with 1 thread, {}/s with 2: {ratio:.2} times as many\n",
            count(one),
            count(two)
        );
    }
    text + "\n"
}
