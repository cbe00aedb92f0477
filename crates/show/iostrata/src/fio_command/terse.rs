//! fio's terse output, versions 2 to 5: a line for each job, fields apart by semicolons. Version 2
//! names neither the program nor disks; all but version 3 have trims; version 5 has more of the
//! requests per second.

use std::fmt::Write;

use super::shape::{DirectionShape, Entries, FioShape, JobShape, LatencyShape};

/// Fields for percentiles; those not requested are `0%=0`.
const PERCENTILES: usize = 20;

/// The lines of a document.
pub fn text(shape: &FioShape, version: u32) -> String {
    shape.jobs.iter().map(|job| line(job, version, shape) + "\n").collect()
}

fn line(job: &JobShape, version: u32, shape: &FioShape) -> String {
    let mut fields = Fields::default();
    fields.add(version);
    if version > 2 {
        fields.add(&shape.version);
    }
    fields.add(&job.jobname);
    fields.add(job.groupid);
    fields.add(job.error);
    let asked = asked(job);
    let reported = job.directions().filter(|(name, _)| version != 3 || *name != "trim");
    for (_, direction) in reported {
        fields.direction(direction, &asked);
        if version == 5 {
            fields.samples(direction);
        }
    }
    fields.percent(job.usr_cpu, 6);
    fields.percent(job.sys_cpu, 6);
    fields.add(job.ctx);
    fields.add(job.majf);
    fields.add(job.minf);
    job.iodepth_level.0.iter().for_each(|(_, share)| fields.percent(*share, 1));
    latencies(job).into_iter().for_each(|share| fields.percent(share, 2));
    let disks = if version > 2 { shape.disk_util.as_slice() } else { &[] };
    for disk in disks {
        fields.add(&disk.name);
        for count in [
            disk.read_ios,
            disk.write_ios,
            disk.read_merges,
            disk.write_merges,
            disk.read_ticks,
            disk.write_ticks,
            disk.in_queue,
        ] {
            fields.add(count);
        }
        fields.percent(disk.util, 2);
    }
    if let Some(description) = &job.desc {
        // As fio has it, behind the end of the line.
        fields.0.push_str(if version == 2 { "\n" } else { "" });
        fields.add(description);
    }
    fields.0
}

/// The names of the percentiles that the job reports.
fn asked(job: &JobShape) -> Vec<String> {
    let mut reported = job.directions().filter_map(|(_, one)| percentiles(one));
    let names = |entries: &Entries<u64>| entries.0.iter().map(|(name, _)| name.clone()).collect();
    reported.next().map(names).unwrap_or_default()
}

/// The percentiles of a direction: of the whole latency where these are reported.
fn percentiles(direction: &DirectionShape) -> Option<&Entries<u64>> {
    direction.lat_ns.percentile.as_ref().or(direction.clat_ns.percentile.as_ref())
}

/// Shares of latencies in microseconds and milliseconds; what is below the first microseconds is
/// with these.
fn latencies(job: &JobShape) -> Vec<f64> {
    let all = |entries: &Entries<f64>| entries.0.iter().map(|(_, share)| *share).collect();
    let mut us: Vec<f64> = all(&job.latency_us);
    let ns: f64 = job.latency_ns.0.iter().map(|(_, share)| share).sum();
    if let Some(first) = us.first_mut() {
        *first += ns;
    }
    us.extend(all(&job.latency_ms));
    us
}

/// Fields as they are added.
#[derive(Default)]
struct Fields(String);

impl Fields {
    fn add(&mut self, field: impl std::fmt::Display) {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        let _never_fails = write!(self.0, "{field}");
    }

    fn decimal(&mut self, value: f64) {
        self.add(format_args!("{value:.6}"));
    }

    fn percent(&mut self, value: f64, decimals: usize) {
        self.add(format_args!("{value:.decimals$}%"));
    }

    fn direction(&mut self, one: &DirectionShape, percentiles: &[String]) {
        self.add(one.io_kbytes);
        self.add(one.bw);
        self.add(one.iops as u64);
        self.add(one.runtime);
        self.latency(&one.slat_ns);
        self.latency(&one.clat_ns);
        let known = self::percentiles(one);
        for (at, name) in percentiles.iter().enumerate().take(PERCENTILES) {
            let ns = known.and_then(|known| known.0.get(at)).map_or(0, |(_, ns)| *ns);
            self.add(format_args!("{name}%={}", ns / 1000));
        }
        (percentiles.len()..PERCENTILES).for_each(|_| self.add("0%=0"));
        self.latency(&one.lat_ns);
        self.add(one.bw_min);
        self.add(one.bw_max);
        self.percent(one.bw_agg, 6);
        self.decimal(one.bw_mean);
        self.decimal(one.bw_dev);
    }

    fn samples(&mut self, one: &DirectionShape) {
        self.add(one.bw_samples);
        self.add(one.iops_min);
        self.add(one.iops_max);
        self.decimal(one.iops_mean);
        self.decimal(one.iops_stddev);
        self.add(one.iops_samples);
    }

    /// In microseconds.
    fn latency(&mut self, one: &LatencyShape) {
        self.add(one.min / 1000);
        self.add(one.max / 1000);
        self.decimal(one.mean / 1000.0);
        self.decimal(one.stddev / 1000.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two fields are the same: numbers to the last digit that both print.
    fn is_same(ours: &str, theirs: &str) -> bool {
        let value = |field: &str| field.trim_end_matches('%').parse::<f64>();
        match (value(ours), value(theirs)) {
            // fio sums up the shares of nanoseconds before it rounds them.
            (Ok(ours), Ok(theirs)) => (ours - theirs).abs() < 0.05,
            _ => ours == theirs,
        }
    }

    #[test]
    fn the_line_of_a_document_is_the_one_that_fio_prints_with_it() {
        for (json, text) in [
            (
                include_str!("../../tests/golden/fio/mixed.json"),
                include_str!("../../tests/golden/fio/mixed.terse"),
            ),
            (
                include_str!("../../tests/golden/fio/several.json"),
                include_str!("../../tests/golden/fio/several.terse"),
            ),
            (
                include_str!("../../tests/golden/fio/slow.json"),
                include_str!("../../tests/golden/fio/slow.terse"),
            ),
        ] {
            let shape: FioShape = serde_json::from_str(json).unwrap();
            let ours = super::text(&shape, 3);
            assert_eq!(ours.lines().count(), text.lines().count());
            for (ours, theirs) in ours.lines().zip(text.lines()) {
                let fields = |line: &str| line.split(';').map(str::to_owned).collect::<Vec<_>>();
                let (ours, theirs) = (fields(ours), fields(theirs));
                assert_eq!(ours.len(), theirs.len());
                let pairs = ours.iter().zip(&theirs).enumerate();
                let differ: Vec<_> =
                    pairs.filter(|(_, (ours, theirs))| !is_same(ours, theirs)).collect();
                assert!(differ.is_empty(), "{differ:?}");
            }
        }
    }
}
