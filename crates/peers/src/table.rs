//! Tables as text: aligned columns, units in the heads, intervals in brackets.

use iostrata_stats::units::count;
use iostrata_stats::{Comparison, Conclusion, Measured};

use crate::engines::Engine;
use crate::figures::{CaseTable, Line, Table};
use crate::plan::Workload;
use crate::space::Bound;

/// Bytes of a mebibyte.
const MIB: f64 = 1_048_576.0;

/// All cases of a workload with their heads and notes.
pub fn text(table: &Table) -> String {
    let Table { workload, rows, value_bytes, seconds, .. } = table;
    let cache_mib = table.cache_bytes as f64 / MIB;
    let mut text = head(workload.name(), table.disk.as_deref(), what(*workload));
    text += &format!(
        "{rows} rows loaded, keys of 8 and values of {value_bytes} bytes, {cache_mib:.0} MiB of \
         memory each, windows of {seconds} s; intervals: 95 %\n"
    );
    for case in &table.cases {
        text += &format!("\n{}\n", title(*workload, case));
        let mut cells = vec![heads(*workload)];
        cells.extend(case.lines.iter().map(|line| row(*workload, line)));
        text += &aligned(&cells);
        if *workload != Workload::Space {
            best(case).iter().for_each(|best| text += &format!("{best}\n"));
        }
    }
    text += "\n";
    table.notes.iter().for_each(|note| text += &format!("- {note}\n"));
    text
}

/// The line that a table begins with.
pub(crate) fn head(name: &str, disk: Option<&str>, what: &str) -> String {
    match disk {
        Some(disk) => format!("== {name}, emulated disk {disk}: {what}\n"),
        None => format!("== {name}: {what}\n"),
    }
}

/// Engines and their versions, one line.
pub fn versions(table: &Table) -> String {
    let engines = table.versions.iter().filter(|(engine, _)| !engine.is_lent_grouping());
    let each = engines.map(|(engine, version)| format!("{engine} {version}"));
    each.collect::<Vec<_>>().join(", ")
}

fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::Commits => "durable commits of one row, new random keys",
        Workload::Reads => "point reads of random rows, all in memory",
        Workload::Scan => "full scans in the order of the keys, all in memory",
        Workload::Updates => "durable batches of random updates, data four times the memory",
        Workload::Space => "space under durable updates of a fixed set of keys",
    }
}

fn title(workload: Workload, table: &CaseTable) -> String {
    let n = table.lines.first().map_or(0, |line| line.rate.n);
    let threads = table.case.threads;
    let samples =
        if n > 0 && workload != Workload::Space { format!(", n = {n}") } else { String::new() };
    match workload {
        Workload::Updates | Workload::Space => {
            format!("{workload}, {threads} threads, batches of {}{samples}", table.case.batch)
        }
        _ => format!("{workload}, threads: {threads}{samples}"),
    }
}

fn heads(workload: Workload) -> Vec<String> {
    let operation = workload.operation();
    let (rate, cpu) = (format!("{operation}s/s"), format!("CPU us/{operation}"));
    let per_thread = format!("{rate} per thread");
    let ratio = "ours/this";
    let heads: Vec<&str> = match workload {
        Workload::Commits => vec![
            "engine", &rate, "worst s", "p50 us", "p99 us", "max us", &cpu, "device B", ratio, "",
        ],
        Workload::Reads | Workload::Scan => {
            vec!["engine", &per_thread, "worst s", &cpu, ratio, ""]
        }
        Workload::Updates => vec![
            "engine",
            &rate,
            "worst s",
            "p50 us",
            "p99 us",
            "max us",
            &cpu,
            "device B",
            "files MiB",
            ratio,
            "",
        ],
        Workload::Space => vec![
            "engine",
            &rate,
            "turnovers",
            "data MiB",
            "start MiB",
            "max MiB",
            "end MiB",
            "max/data",
            "growth",
            "",
        ],
    };
    heads.into_iter().map(str::to_owned).collect()
}

fn row(workload: Workload, line: &Line) -> Vec<String> {
    let mut cells = vec![line.engine.to_string(), measured(&line.rate)];
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.2}"));
    if workload == Workload::Space {
        cells.extend(space_cells(line));
        return cells;
    }
    cells.push(share(line.worst_second));
    if workload.is_writing() {
        let latency = |of: fn(&iostrata_stats::LatencyUs) -> f64| {
            line.latency_us.as_ref().map_or("-".to_owned(), |all| count(of(all)))
        };
        cells.extend([latency(|all| all.p50), latency(|all| all.p99), latency(|all| all.max)]);
    }
    cells.push(count(line.cpu_us));
    if workload.is_writing() {
        cells.push(line.device_bytes.map_or("-".to_owned(), count));
    }
    if workload == Workload::Updates {
        cells.push(format!("{:.0}", line.end_bytes as f64 / MIB));
    }
    cells.push(line.ours_over_it.as_ref().map_or(String::new(), ratio));
    cells.push(line.ours_over_it.as_ref().map_or(String::new(), |found| follows(found).to_owned()));
    cells
}

fn space_cells(line: &Line) -> Vec<String> {
    let Some(space) = &line.space else { return Vec::new() };
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB);
    let bound = match space.bound {
        Bound::Bounded => "bounded",
        Bound::Growing => "growing",
        Bound::TooShort => "too short to tell",
    };
    vec![
        format!("{:.1}", space.turnovers),
        mib(space.data_bytes),
        mib(space.start_bytes),
        mib(space.max_bytes),
        mib(space.end_bytes),
        format!("{:.2}", space.max_bytes as f64 / space.data_bytes.max(1) as f64),
        format!("{:.2}", space.growth),
        bound.to_owned(),
    ]
}

/// Ours against the fastest peer as it comes, and against the fastest with grouping: a sentence
/// each.
fn best(table: &CaseTable) -> Vec<String> {
    let sentence = |engine: Option<Engine>, what: &str| {
        let engine = engine?;
        let line = table.lines.iter().find(|line| line.engine == engine)?;
        let found = line.ours_over_it.as_ref()?;
        Some(format!(
            "ours over the fastest {what}, {engine}: {}, {}",
            ratio(found),
            follows(found)
        ))
    };
    let come = sentence(table.best_peer, "peer as it comes");
    let lent = sentence(table.best_lent, "peer with our grouping lent to it");
    come.into_iter().chain(lent).collect()
}

/// `1.52 [1.40, 1.66]`.
fn ratio(comparison: &Comparison) -> String {
    match comparison.ratio.ci95 {
        Some([low, high]) => format!("{:.2} [{low:.2}, {high:.2}]", comparison.ratio.value),
        None => format!("{:.2}", comparison.ratio.value),
    }
}

fn follows(comparison: &Comparison) -> &'static str {
    match comparison.conclusion {
        Conclusion::Higher => "ours is faster",
        Conclusion::Lower => "ours is slower",
        Conclusion::NoMeasurableDifference => "no difference seen",
        Conclusion::TooFewPairs => "too few rounds",
    }
}

/// `12.3k [11.8k, 12.9k]`. A rate is not negative, however wide its interval.
fn measured(figure: &Measured) -> String {
    match figure.ci95 {
        Some([low, high]) => {
            format!("{} [{}, {}]", count(figure.value), count(low.max(0.0)), count(high))
        }
        None => count(figure.value),
    }
}

/// Columns as wide as their widest cell: the first and the last to the left, numbers to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if at == 0 || at + 1 == columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// The engines of a table, for its head.
pub fn engines(engines: &[Engine]) -> String {
    engines.iter().map(|engine| engine.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::samples;
    use crate::plan::Case;

    #[test]
    fn the_head_names_an_emulated_disk() {
        assert_eq!(head("scan", None, "all"), "== scan: all\n");
        let found = head("scan", Some("nvme,flush=2ms"), "all");
        assert_eq!(found, "== scan, emulated disk nvme,flush=2ms: all\n");
    }

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = aligned(&[row(["engine", "n", "x"]), row(["a", "12345", ""])]);
        assert_eq!(text, "engine      n  x\na       12345\n");
    }

    #[test]
    fn every_row_has_a_cell_for_every_head() {
        for workload in [Workload::Commits, Workload::Reads, Workload::Scan, Workload::Updates] {
            let all = [
                (Engine::Iostrata, samples([200, 202, 199], workload)),
                (Engine::Redb, samples([100, 101, 100], workload)),
                (Engine::FjallGroup, samples([400, 404, 399], workload)),
            ];
            let table = CaseTable::new(Case { threads: 4, batch: 1 }, &all);
            let heads = heads(workload).len();
            assert!(table.lines.iter().all(|line| row(workload, line).len() == heads));
            let best = best(&table);
            assert!(best[0].contains("as it comes, redb: 1.99 ["), "{best:?}");
            assert!(best[0].ends_with("ours is faster"), "{best:?}");
            assert!(best[1].contains("lent to it, fjall+group: 0.50 ["), "{best:?}");
            assert!(best[1].ends_with("ours is slower") && best.len() == 2, "{best:?}");
        }
    }
}
