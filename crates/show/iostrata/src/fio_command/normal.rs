//! fio's normal output: text for readers, and for scripts that look for its `IOPS=` and `BW=`.
//!
//! Invariant: made of fio's shape alone, so that both hold the same figures.

use std::collections::BTreeMap;
use std::fmt::Write;

use iostrata_plan::fio::{FioJob, FioPlan};
use iostrata_plan::{Access, BlockSizes, Blocks, Mix};

use super::shape::{DirectionShape, Entries, FioShape, JobShape, LatencyShape};

/// Columns of a line of percentiles behind its margin.
const PERCENTILE_COLUMNS: usize = 73;
/// Buckets of latency in one line.
const BUCKETS_PER_LINE: usize = 5;

/// What fio prints before its jobs run: a line for each.
pub fn header(plan: &FioPlan, version: &str) -> String {
    let mut text = String::new();
    for job in plan.waves.iter().flat_map(|wave| &wave.jobs) {
        text.push_str(&job_line(job));
        if job.streams.iter().map(|stream| stream.spec.jobs).sum::<u32>() > 1 {
            text.push_str("...\n");
        }
    }
    text.push_str(version);
    text.push('\n');
    text
}

fn job_line(job: &FioJob) -> String {
    let Some(stream) = job.streams.first() else { return String::new() };
    let spec = &stream.spec;
    let order = if spec.access == Access::Sequential { "" } else { "rand" };
    let what = match spec.mix {
        Mix::Read => "read",
        Mix::Write => "write",
        Mix::Both { .. } => "rw",
        Mix::Trim => "trim",
        Mix::TrimWrite => "trimwrite",
        Mix::FlushOnly(_) => "sync",
    };
    let one = BlockSizes::One(spec.block_bytes);
    let (read, write) = match &spec.variation.blocks {
        Blocks::Fixed => (&one, &one),
        Blocks::ByKind { read, write } => (read, write),
    };
    format!(
        "{}: (g={}): rw={order}{what}, bs=(R) {}, (W) {}, (T) {}, ioengine={}, iodepth={}\n",
        job.name,
        job.group,
        range(read),
        range(write),
        range(read),
        spec.api.name(),
        spec.depth
    )
}

fn range(sizes: &BlockSizes) -> String {
    let (least, most) = match sizes {
        BlockSizes::One(bytes) => (*bytes, *bytes),
        BlockSizes::Range { least, most } => (*least, *most),
        BlockSizes::Shares(shares) => {
            let bytes = || shares.iter().map(|share| share.bytes);
            (bytes().min().unwrap_or(0), bytes().max().unwrap_or(0))
        }
    };
    let size = |bytes: u32| binary(f64::from(bytes));
    format!("{}-{}", size(least), size(most))
}

/// The results.
pub fn text(shape: &FioShape) -> String {
    let mut text = String::from("\n");
    for job in &shape.jobs {
        text.push_str(&job_text(job, &shape.time));
    }
    let mut groups: BTreeMap<u32, Vec<&JobShape>> = BTreeMap::new();
    shape.jobs.iter().for_each(|job| groups.entry(job.groupid).or_default().push(job));
    for (number, jobs) in groups {
        text.push_str(&group_text(number, &jobs));
    }
    if !shape.disk_util.is_empty() {
        text.push_str("\nDisk stats (read/write):\n");
    }
    for disk in &shape.disk_util {
        text.push_str(&format!(
            "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%\n",
            disk.name,
            disk.read_ios,
            disk.write_ios,
            disk.read_merges,
            disk.write_merges,
            disk.read_ticks,
            disk.write_ticks,
            disk.in_queue,
            disk.util
        ));
    }
    text
}

fn job_text(job: &JobShape, time: &str) -> String {
    let mut text = format!(
        "{}: (groupid={}, jobs={}): err={:2}: pid={}: {time}\n",
        job.jobname,
        job.groupid,
        job.clones.max(1),
        job.error,
        std::process::id()
    );
    if let Some(description) = &job.desc {
        text.push_str(&format!("  Description  : [{description}]\n"));
    }
    for (name, one) in job.directions() {
        if one.total_ios > 0 {
            text.push_str(&direction_text(name, one));
        }
    }
    for (unit, buckets) in
        [("nsec", &job.latency_ns), ("usec", &job.latency_us), ("msec", &job.latency_ms)]
    {
        text.push_str(&bucket_lines(unit, buckets));
    }
    if job.sync.lat_ns.count > 0 {
        text.push_str("  fsync/fdatasync/sync_file_range:\n");
        text.push_str(&latency_line("sync", 4, &job.sync.lat_ns));
        text.push_str(&percentile_lines("sync", &job.sync.lat_ns));
    }
    text.push_str(&format!(
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}\n",
        job.usr_cpu, job.sys_cpu, job.ctx, job.majf, job.minf
    ));
    text.push_str(&format!("  IO depths    : {}\n", classes(&job.iodepth_level)));
    text.push_str(&format!("     submit    : {}\n", classes(&job.iodepth_submit)));
    text.push_str(&format!("     complete  : {}\n", classes(&job.iodepth_complete)));
    let list = |of: fn(&DirectionShape) -> u64, syncs: u64| {
        let reads = job.read.as_ref().or(job.mixed.as_ref());
        let columns = [reads, job.write.as_ref(), job.trim.as_ref()];
        let counts = columns.map(|one| one.map_or(0, of).to_string());
        format!("{},{syncs}", counts.join(","))
    };
    text.push_str(&format!(
        "     issued rwts: total={} short={} dropped={}\n",
        list(|one| one.total_ios, job.sync.total_ios),
        list(|one| one.short_ios, 0),
        list(|one| one.drop_ios, 0)
    ));
    text.push_str(&format!(
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}\n",
        job.latency_target, job.latency_window, job.latency_percentile, job.latency_depth
    ));
    text
}

fn direction_text(name: &str, one: &DirectionShape) -> String {
    let zones = if name == "write" { "; 0 zone resets" } else { "" };
    let mut text = format!(
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec){zones}\n",
        number(one.iops.trunc(), 4, 1000.0, &DECIMAL),
        binary(one.bw_bytes as f64),
        decimal(one.bw_bytes as f64),
        binary(one.io_bytes as f64),
        one.runtime
    );
    let latencies = [("slat", &one.slat_ns), ("clat", &one.clat_ns), ("lat", &one.lat_ns)];
    for (name, latency) in latencies {
        if latency.count > 0 {
            text.push_str(&latency_line(name, 4, latency));
        }
    }
    for (name, latency) in latencies {
        text.push_str(&percentile_lines(name, latency));
    }
    if one.bw_samples > 0 {
        // From a GiB/s on in MiB/s.
        let (unit, divisor) = if one.bw_mean > 1_048_576.0 { ("MiB", 1024) } else { ("KiB", 1) };
        text.push_str(&format!(
            "   bw ({unit:>5}/s): min={:5}, max={:5}, per={:.2}%, avg={:5.2}, stdev={:5.2}, \
             samples={}\n",
            one.bw_min / divisor,
            one.bw_max / divisor,
            one.bw_agg,
            one.bw_mean / divisor as f64,
            one.bw_dev / divisor as f64,
            one.bw_samples
        ));
    }
    if one.iops_samples > 0 {
        text.push_str(&format!(
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}\n",
            one.iops_min, one.iops_max, one.iops_mean, one.iops_stddev, one.iops_samples
        ));
    }
    text
}

/// Least, largest, mean and deviation in the unit that fits them.
fn latency_line(name: &str, width: usize, one: &LatencyShape) -> String {
    let (mut min, mut max, mut mean, mut stddev) = (one.min, one.max, one.mean, one.stddev);
    let mut unit = "nsec";
    for larger in ["usec", "msec"] {
        if !(min > 2000 && max > 99_999 && stddev > 1000.0) {
            break;
        }
        (min, max, mean, stddev) = (min / 1000, max / 1000, mean / 1000.0, stddev / 1000.0);
        unit = larger;
    }
    let short = |value: u64| number(value as f64, 6, 1000.0, &DECIMAL);
    format!(
        "    {name:>width$} ({unit}): min={}, max={}, avg={mean:5.2}, stdev={stddev:5.2}\n",
        short(min),
        short(max)
    )
}

/// Percentiles in the unit that fits them, rounded up.
fn percentile_lines(name: &str, one: &LatencyShape) -> String {
    let entries = one.percentile.as_ref().map(|entries| entries.0.as_slice()).unwrap_or_default();
    let (Some((_, least)), Some((_, most))) = (entries.first(), entries.last()) else {
        return String::new();
    };
    let (unit, divisor) = match (*least, *most) {
        (least, most) if least > 2_000_000 && most > 99_999_999 => ("msec", 1_000_000),
        (least, most) if least > 2_000 && most > 99_999 => ("usec", 1_000),
        _ => ("nsec", 1),
    };
    let width = most.div_ceil(divisor).to_string().len().max(5);
    // As many decimals as one of them needs.
    let decimals_of =
        |name: &str| name.split_once('.').map_or(0, |(_, tail)| tail.trim_end_matches('0').len());
    let decimals = entries.iter().map(|(name, _)| decimals_of(name)).max().unwrap_or(0);
    let per_line = (PERCENTILE_COLUMNS / (decimals + 10 + width)).max(1);
    let mut text = format!("    {name} percentiles ({unit}):\n");
    for line in entries.chunks(per_line) {
        let is_last = line.as_ptr_range().end == entries.as_ptr_range().end;
        let fields = line.iter().map(|(name, ns)| {
            let percent: f64 = name.parse().unwrap_or(0.0);
            let columns = decimals + 3;
            format!("{percent:columns$.decimals$}th=[{:width$}]", ns.div_ceil(divisor))
        });
        let end = if is_last { "" } else { "," };
        text.push_str(&format!("     | {}{end}\n", fields.collect::<Vec<_>>().join(", ")));
    }
    text
}

/// Buckets that hold something, a few in a line.
fn bucket_lines(unit: &str, buckets: &Entries<f64>) -> String {
    let held: Vec<String> = buckets
        .0
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{name}={share:.2}%"))
        .collect();
    held.chunks(BUCKETS_PER_LINE)
        .map(|line| format!("  lat ({unit})   : {}\n", line.join(", ")))
        .collect()
}

fn classes(entries: &Entries<f64>) -> String {
    let shown = entries.0.iter().map(|(name, share)| format!("{name}={share:.1}%"));
    shown.collect::<Vec<_>>().join(", ")
}

fn group_text(number: u32, jobs: &[&JobShape]) -> String {
    let mut text = format!("\nRun status group {number} (all jobs):\n");
    for direction in ["read", "write", "trim", "mixed"] {
        let all = jobs.iter().flat_map(|job| job.directions());
        let all = all.filter(|(name, one)| *name == direction && one.total_ios > 0);
        let active: Vec<&DirectionShape> = all.map(|(_, one)| one).collect();
        let name = direction.to_uppercase();
        let runtimes = || active.iter().map(|one| one.runtime);
        let rates = || active.iter().map(|one| one.bw_bytes);
        let (Some(least_ms), Some(most_ms)) = (runtimes().min(), runtimes().max()) else {
            continue;
        };
        let bytes: u64 = active.iter().map(|one| one.io_bytes).sum();
        let [whole, least, most] = [
            bytes as f64 * 1000.0 / most_ms.max(1) as f64,
            rates().min().unwrap_or(0) as f64,
            rates().max().unwrap_or(0) as f64,
        ];
        let _never_fails = writeln!(
            text,
            "  {name:>5}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), \
             run={least_ms}-{most_ms}msec",
            binary(whole),
            decimal(whole),
            binary(least),
            binary(most),
            decimal(least),
            decimal(most),
            binary(bytes as f64),
            decimal(bytes as f64)
        );
    }
    text
}

const DECIMAL: [&str; 6] = ["", "k", "M", "G", "T", "P"];

fn binary(bytes: f64) -> String {
    number(bytes, 4, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

fn decimal(bytes: f64) -> String {
    number(bytes, 4, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// A number in so many characters, in the smallest of the units in which it fits.
fn number(value: f64, width: usize, base: f64, units: &[&str]) -> String {
    let most = 10_f64.powi(width as i32) - 1.0;
    let mut scaled = value;
    let mut unit = 0;
    while scaled.round() > most && unit + 1 < units.len() {
        scaled /= base;
        unit += 1;
    }
    let whole = scaled.trunc().to_string().len();
    let decimals = if unit == 0 { 0 } else { width.saturating_sub(whole + 1) };
    let unit = units.get(unit).copied().unwrap_or_default();
    format!("{scaled:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document of a run of fio 3.33, with the clones that its text names, and that text.
    fn run_of_fio(json: &str, text: &str) -> (FioShape, String) {
        let mut shape: FioShape = serde_json::from_str(json).unwrap();
        let clones = text.lines().filter_map(|line| {
            line.split_once(", jobs=")?.1.split_once(')')?.0.parse::<u32>().ok()
        });
        shape.jobs.iter_mut().zip(clones).for_each(|(job, clones)| job.clones = clones);
        (shape, text.to_owned())
    }

    /// A line without the number of the process and the time, which the document has not.
    fn without_pid(line: &str) -> &str {
        line.split_once(" pid=").map_or(line, |(before, _)| before)
    }

    #[test]
    fn the_text_of_a_document_is_the_one_that_fio_prints_with_it() {
        for (json, text) in [
            (
                include_str!("../../tests/golden/fio/mixed.json"),
                include_str!("../../tests/golden/fio/mixed.txt"),
            ),
            (
                include_str!("../../tests/golden/fio/several.json"),
                include_str!("../../tests/golden/fio/several.txt"),
            ),
            (
                include_str!("../../tests/golden/fio/slow.json"),
                include_str!("../../tests/golden/fio/slow.txt"),
            ),
        ] {
            let (shape, theirs) = run_of_fio(json, text);
            let ours = super::text(&shape);
            let lines = ours.lines().map(without_pid).zip(theirs.lines().map(without_pid));
            let differ: Vec<_> = lines.filter(|(ours, theirs)| ours != theirs).collect();
            assert!(differ.is_empty(), "{differ:#?}");
            assert_eq!(ours.lines().count(), theirs.lines().count());
        }
    }
}
