//! What tuning saved and what it cost, against the time in which the server had its own settings.
//!
//! Invariants: pure; only times under a like load are compared, in which the redo went round once
//! at least: before that a server neither stalls nor writes what it will have to. What was not seen
//! is not known. Rates carry the interval of their mean, a percentile the interval of its rank; a
//! least value and a sum have none, and give the number of their samples.

use std::collections::BTreeMap;

use iostrata_run::{TransactionStall, TunedFigure, WatchDocument, WatchSample};
use iostrata_stats::{Measured, Verdicts, estimate, estimate_ratio};

/// A time with settings of its own counts from so many samples on, if redo was made at a rate
/// within this factor of that when the server was tuned.
const SAMPLES_MIN: usize = 30;
const LIKE: f64 = 2.0;
/// The worst time is so long; where samples are so far apart that it would be longer than the
/// second, there is none.
const WORST_S: f64 = 2.0;
const WORST_MOST_S: f64 = 3.0;
/// Commits below which their percentile is meaningless.
const COMMITS_MIN: u64 = 1_000;
/// Of a normal distribution.
const Z95: f64 = 1.96;

/// How long commits took: how many by the upper bound of their time, in microseconds.
pub type CommitTimes = BTreeMap<u64, u64>;

/// The figures of a server that was tuned in these spans, in seconds, with the times of commits
/// before and in them; none where it was not tuned.
pub fn tuned_figures(
    recording: &WatchDocument,
    spans: &[[f64; 2]],
    commits: [&CommitTimes; 2],
) -> Vec<TunedFigure> {
    let is_tuned = |one: &&WatchSample| {
        spans.iter().any(|[from_s, to_s]| one.t_s > *from_s && one.t_s <= *to_s)
    };
    let told: Vec<&WatchSample> =
        recording.samples.iter().filter(|one| one.tps.is_some()).collect();
    let run = |samples| Run { samples, stalls: &recording.stalls };
    let (tuned, own): (Vec<Run<'_>>, Vec<Run<'_>>) = told
        .chunk_by(|a, b| is_tuned(a) == is_tuned(b))
        .map(run)
        .partition(|run| run.samples.first().is_some_and(is_tuned));
    let Some(rate) = redo_rate(&tuned) else { return Vec::new() };
    let is_like = |run: &Run<'_>| {
        let of_run = redo_rate(std::slice::from_ref(run));
        run.samples.len() >= SAMPLES_MIN
            && of_run.is_some_and(|own| {
                (1.0 / LIKE..=LIKE).contains(&(own / rate)) && run.has_gone_round(own)
            })
    };
    let own: Vec<Run<'_>> = own.into_iter().filter(is_like).collect();
    let figures: [(&str, &str, &str, Figure); 6] = [
        ("observed_s", "time", "s", observed_s),
        ("tps", "throughput", "transactions/s", |runs| mean(runs, |one| one.tps)),
        ("worst_2s_tps", "worst two seconds", "transactions/s", worst_2s),
        ("stalled_s", "stalled", "s", stalled_s),
        ("pages_written_per_txn", "pages written per transaction", "pages", |runs| {
            per_txn(runs, |one| one.flushed_pages_per_s)
        }),
        ("device_ms_per_txn", "device time per transaction", "ms", |runs| {
            per_txn(runs, device_ms_per_s)
        }),
    ];
    let figure = |name: &str, title: &str, unit: &str| TunedFigure {
        name: name.to_owned(),
        title: title.to_owned(),
        unit: unit.to_owned(),
        ..TunedFigure::default()
    };
    let of = |(name, title, unit, of): (&str, &str, &str, Figure)| TunedFigure {
        untuned: of(&own),
        tuned: of(&tuned),
        ..figure(name, title, unit)
    };
    let mut all: Vec<TunedFigure> = figures.into_iter().map(of).collect();
    // Those before are of the load that is compared only.
    let untuned = commit_p99(commits[0]).filter(|_| !own.is_empty());
    let p99 = figure("commit_p99_us", "99 of 100 commits within", "us");
    all.push(TunedFigure { untuned, tuned: commit_p99(commits[1]), ..p99 });
    all
}

/// Samples one after the other, all of one kind, and the stalls of the recording.
struct Run<'a> {
    samples: &'a [&'a WatchSample],
    stalls: &'a [TransactionStall],
}

impl Run<'_> {
    /// From the first sample to the last, in seconds.
    fn span_s(&self) -> Option<[f64; 2]> {
        Some([self.samples.first()?.t_s, self.samples.last()?.t_s])
    }

    fn length_s(&self) -> f64 {
        self.span_s().map_or(0.0, |[from_s, to_s]| to_s - from_s)
    }

    /// Whether as much redo was made as may be old; true where that is not known.
    fn has_gone_round(&self, redo_bytes_per_s: f64) -> bool {
        let limit = self.samples.iter().rev().find_map(|one| one.checkpoint_age_limit_bytes);
        limit.is_none_or(|limit| redo_bytes_per_s * self.length_s() >= limit as f64)
    }

    /// Means of every two seconds, as far as samples lie close enough.
    fn of_2s(&self) -> impl Iterator<Item = f64> {
        // Each sample covers the time since the one before.
        let times: Vec<(f64, f64)> = self
            .samples
            .windows(2)
            .filter_map(|pair| Some((pair[1].t_s - pair[0].t_s, pair[1].tps?)))
            .collect();
        (0..times.len()).filter_map(move |from| {
            let (mut seconds, mut count) = (0.0, 0.0);
            for (lasted_s, tps) in &times[from..] {
                seconds += lasted_s;
                count += lasted_s * tps;
                // Samples come a little early or late.
                if seconds >= 0.9 * WORST_S {
                    return (seconds <= WORST_MOST_S).then_some(count / seconds);
                }
            }
            None
        })
    }
}

type Figure = fn(&[Run<'_>]) -> Option<Measured>;
type Rate = fn(&WatchSample) -> Option<f64>;

fn all<'a>(runs: &'a [Run<'_>]) -> impl Iterator<Item = &'a WatchSample> {
    runs.iter().flat_map(|run| run.samples.iter().copied())
}

fn redo_rate(runs: &[Run<'_>]) -> Option<f64> {
    let rates: Vec<f64> = all(runs).filter_map(|one| one.redo_bytes_per_s).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    Some(mean).filter(|mean| *mean > 0.0)
}

fn mean(runs: &[Run<'_>], rate: Rate) -> Option<Measured> {
    let rates: Vec<f64> = all(runs).filter_map(rate).collect();
    estimate(&rates)
}

fn per_txn(runs: &[Run<'_>], rate: Rate) -> Option<Measured> {
    let (sums, counts): (Vec<f64>, Vec<f64>) =
        all(runs).filter_map(|one| Some((rate(one)?, one.tps?))).unzip();
    estimate_ratio(&sums, &counts)
}

fn device_ms_per_s(sample: &WatchSample) -> Option<f64> {
    let device = sample.device.as_ref()?;
    let time =
        |per_s: f64, ms: Option<f64>| if per_s > 0.0 { ms.map(|ms| per_s * ms) } else { Some(0.0) };
    Some(time(device.reads_per_s, device.read_ms)? + time(device.writes_per_s, device.write_ms)?)
}

fn counted(value: f64, n: usize) -> Option<Measured> {
    (n > 0).then(|| Measured::without_interval(value, n as u64, Verdicts::none()))
}

/// Seconds from the first sample of each run to its last.
fn observed_s(runs: &[Run<'_>]) -> Option<Measured> {
    counted(runs.iter().map(Run::length_s).sum(), all(runs).count())
}

fn stalled_s(runs: &[Run<'_>]) -> Option<Measured> {
    let within = |run: &Run<'_>| {
        let [from_s, to_s] = run.span_s()?;
        let length = |one: &TransactionStall| {
            ((one.t_s + one.length_s).min(to_s) - one.t_s.max(from_s)).max(0.0)
        };
        Some(run.stalls.iter().map(length).sum::<f64>())
    };
    counted(runs.iter().filter_map(within).sum(), all(runs).count())
}

fn worst_2s(runs: &[Run<'_>]) -> Option<Measured> {
    let rates: Vec<f64> = runs.iter().flat_map(Run::of_2s).collect();
    counted(rates.iter().copied().reduce(f64::min)?, rates.len())
}

fn commit_p99(times: &CommitTimes) -> Option<Measured> {
    let n: u64 = times.values().sum();
    let rank = |z: f64| {
        let (n, share) = (n as f64, 0.99);
        (n * share + z * (n * share * (1.0 - share)).sqrt()).clamp(1.0, n)
    };
    let at = |rank: f64| {
        let mut passed = 0.0;
        times.iter().find_map(|(us, count)| {
            passed += *count as f64;
            (passed >= rank).then_some(*us as f64)
        })
    };
    if n < COMMITS_MIN {
        return None;
    }
    let ci95 = [at(rank(-Z95))?, at(rank(Z95))?];
    Some(Measured::new(at(rank(0.0))?, ci95, n, Verdicts::none()))
}

#[cfg(test)]
mod tests {
    use iostrata_run::WatchDevice;

    use super::*;

    /// Two minutes with own settings, in which every tenth second stands, and two tuned. The redo
    /// goes round in a minute.
    fn recording(own_redo: f64) -> WatchDocument {
        let stands = |second: u32| second < 120 && second % 10 == 9;
        let sample = |second: u32| {
            let is_own = second < 120;
            let stalled = stands(second);
            let tps = if stalled { 10.0 } else { 100.0 };
            let device =
                WatchDevice { writes_per_s: 200.0, write_ms: Some(0.5), ..WatchDevice::default() };
            WatchSample {
                t_s: f64::from(second),
                tps: (second > 0).then_some(tps),
                checkpoint_age_limit_bytes: Some(60_000_000),
                redo_bytes_per_s: Some(if is_own { own_redo } else { 1e6 }),
                flushed_pages_per_s: Some(tps * if is_own { 2.0 } else { 1.5 }),
                device: (!is_own).then_some(device),
                stalled,
                ..WatchSample::default()
            }
        };
        let stall = |second: u32| TransactionStall {
            t_s: f64::from(second - 1),
            length_s: 1.0,
            ..TransactionStall::default()
        };
        WatchDocument {
            samples: (0..240).map(sample).collect(),
            stalls: (0..240).filter(|second| stands(*second)).map(stall).collect(),
            ..WatchDocument::default()
        }
    }

    fn values(figures: &[TunedFigure], name: &str) -> [Option<f64>; 2] {
        let one = figures.iter().find(|one| one.name == name).unwrap();
        [&one.untuned, &one.tuned].map(|side| side.as_ref().map(|side| side.value))
    }

    #[test]
    fn both_times_stand_beside_each_other() {
        let none = CommitTimes::new();
        let found = tuned_figures(&recording(1e6), &[[119.0, 239.0]], [&none, &none]);
        assert_eq!(values(&found, "worst_2s_tps"), [Some(55.0), Some(100.0)]);
        assert_eq!(values(&found, "stalled_s"), [Some(12.0), Some(0.0)]);
        let [own, tuned] = values(&found, "pages_written_per_txn").map(Option::unwrap);
        assert!((own - 2.0).abs() < 1e-9 && (tuned - 1.5).abs() < 1e-9, "{own} {tuned}");
        assert_eq!(values(&found, "device_ms_per_txn"), [None, Some(1.0)]);
        assert_eq!(values(&found, "commit_p99_us"), [None, None]);
        let tps = found.iter().find(|one| one.name == "tps").unwrap();
        assert!(tps.untuned.as_ref().is_some_and(|side| side.ci95.is_some() && side.n > 0));
    }

    #[test]
    fn another_load_before_is_not_compared() {
        let none = CommitTimes::new();
        let of =
            |redo: f64, spans: &[[f64; 2]]| tuned_figures(&recording(redo), spans, [&none, &none]);
        assert_eq!(values(&of(1e5, &[[119.0, 239.0]]), "tps")[0], None, "it was another load");
        assert_eq!(values(&of(1e6, &[[10.0, 239.0]]), "tps")[0], None, "it was too short");
        assert_eq!(of(1e6, &[]), []);
    }

    #[test]
    fn a_time_in_which_the_redo_did_not_go_round_is_not_compared() {
        let none = CommitTimes::new();
        let of = |from_s: f64| {
            let found = tuned_figures(&recording(1e6), &[[from_s, 239.0]], [&none, &none]);
            values(&found, "pages_written_per_txn")[0]
        };
        assert_eq!(of(58.0), None, "it would stall and write later");
        assert!(of(62.0).is_some());
    }

    /// What a recording of hours keeps, and one of ten samples a second.
    #[test]
    fn the_worst_time_and_the_stalls_are_as_long_as_they_say() {
        let none = CommitTimes::new();
        let of = |recording: &WatchDocument| {
            let found = tuned_figures(recording, &[[119.0, 239.0]], [&none, &none]);
            (values(&found, "worst_2s_tps"), values(&found, "stalled_s"))
        };
        let mut few = recording(1e6);
        few.samples.retain(|one| one.t_s % 4.0 == 3.0);
        assert_eq!(of(&few), ([None, None], [Some(12.0), Some(0.0)]));
        let mut many = recording(1e6);
        let tenth = |(one, part): (&WatchSample, u32)| WatchSample {
            t_s: one.t_s - 0.1 * f64::from(part),
            ..one.clone()
        };
        let whole = many.samples[2..].iter();
        many.samples =
            whole.flat_map(|one| (0..10).rev().map(move |at| tenth((one, at)))).collect();
        let [own, tuned] = of(&many).0.map(Option::unwrap);
        assert!((45.0..60.0).contains(&own) && tuned > 99.9, "{own} {tuned}");
    }

    #[test]
    fn a_percentile_has_the_interval_of_its_rank() {
        let times = CommitTimes::from([(100, 9_000), (200, 885), (400, 75), (900, 40)]);
        let p99 = commit_p99(&times).unwrap();
        assert_eq!((p99.value, p99.n), (400.0, 10_000));
        assert_eq!(p99.ci95, Some([200.0, 400.0]));
        assert_eq!(commit_p99(&CommitTimes::from([(100, 999)])), None);
    }
}
