//! What the reader of `iostrata io` is told beside the figures: why it ended early, and how long it
//! would have to run for figures that are precise.
//!
//! Pure. Verdicts say what is wrong with a figure; these say what to do.

use iostrata_plan::{IoSpec, OpKind, Preparation};
use iostrata_run::{OpFigures, StreamFigures};
use iostrata_stats::units::{self as units, Size};
use iostrata_stats::{Verdict, time_for_precision};

/// A window that is shorter than asked for by less than this has not ended early.
const SHORTER_S: f64 = 0.05;

/// All notes on the one stream of the command. `whole` is false when it was interrupted or failed.
pub fn notes(spec: &IoSpec, stream: &StreamFigures, duration_s: f64, whole: bool) -> Vec<String> {
    let early = ended_early(spec, stream, duration_s).filter(|_| whole);
    early.into_iter().chain(longer(spec, stream, duration_s)).collect()
}

/// Why the window is shorter than `--runtime`.
fn ended_early(spec: &IoSpec, stream: &StreamFigures, duration_s: f64) -> Option<String> {
    let asked_s = spec.runtime?.as_secs_f64();
    if duration_s + SHORTER_S.max(0.01 * asked_s) >= asked_s {
        return None;
    }
    let written: u64 = stream.ops[OpKind::Write].as_ref().map_or(0, |op| op.bytes);
    let why = match spec.write_bytes_max {
        Some(most)
            if written + u64::from(spec.block_bytes) * spec.in_flight_max() as u64 >= most =>
        {
            format!("--max-write {} was used up", Size(most))
        }
        _ if spec.preparation != Preparation::Written && spec.mix.writes() => format!(
            "every block of --size {} was written once; use a larger --size, or --prepare written",
            Size(spec.size_bytes)
        ),
        _ => return None,
    };
    let (ended, asked) = (units::seconds(duration_s), units::seconds(asked_s));
    Some(format!("it ended after {ended} of --runtime {asked}: {why}"))
}

/// How long to measure for figures without `too_few_samples`, and for the precision asked for.
fn longer(spec: &IoSpec, stream: &StreamFigures, duration_s: f64) -> Option<String> {
    let needs = |(_, op): (OpKind, &OpFigures)| needed_s(op, spec.precision, duration_s);
    let needed_s = stream.ops.iter().filter_map(needs).reduce(f64::max)?;
    let precision = units::percent(spec.precision * 100.0);
    let option = if spec.runtime.is_some() { "--runtime" } else { "--point-time" };
    Some(match needed_s {
        s if s.is_finite() => format!(
            "for an interval within {precision} measure about {}: {option} {}s",
            units::seconds(s),
            s.ceil()
        ),
        _ => format!(
            "too few requests completed to say how long is long enough; try {option} {}s",
            (10.0 * duration_s).ceil()
        ),
    })
}

/// Seconds that this kind of request needs; `None` when it has them.
fn needed_s(op: &OpFigures, precision: f64, duration_s: f64) -> Option<f64> {
    let doubted = op.iops.verdicts.has(Verdict::TooFewSamples);
    let wide = op.iops.relative_half_width();
    if !doubted && wide <= precision {
        return None;
    }
    let for_width_s = time_for_precision(duration_s, wide, precision);
    // Too few, however narrow it looks: at least twice as much.
    Some(if doubted { for_width_s.max(2.0 * duration_s) } else { for_width_s })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iostrata_plan::Mix;
    use iostrata_stats::{Latencies, LatencyUs, Measured, Verdicts};

    use super::*;

    fn stream(rate: f64, half_width: f64, verdicts: Verdicts) -> StreamFigures {
        let factor = (half_width / rate).exp();
        let iops = Measured::new(rate, [rate / factor, rate * factor], 30, verdicts);
        let op = OpFigures {
            ios: 1000,
            bytes: 4096 * 1000,
            latency_mean_us: iops.clone(),
            iops,
            latency_us: LatencyUs::default(),
            response_mean_us: None,
            response_us: None,
            latencies: Latencies::default(),
        };
        StreamFigures {
            name: "main".to_owned(),
            ops: [(OpKind::Write, op)].into_iter().collect(),
            ..StreamFigures::default()
        }
    }

    fn spec(runtime_s: u64) -> IoSpec {
        let mut spec = IoSpec::new("x");
        (spec.mix, spec.runtime) = (Mix::Write, Some(Duration::from_secs(runtime_s)));
        (spec.size_bytes, spec.preparation) = (64 << 20, Preparation::Empty);
        spec
    }

    #[test]
    fn a_size_that_ends_the_runtime_is_named() {
        let sound = stream(1000.0, 10.0, Verdicts::none());
        let found = notes(&spec(10), &sound, 1.2, true);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("it ended after 1.2 s of --runtime 10 s: "), "{found:?}");
        assert!(found[0].contains("--size 64M"), "{found:?}");
        assert_eq!(notes(&spec(10), &sound, 1.2, false), Vec::<String>::new(), "it was stopped");
        assert_eq!(notes(&spec(10), &sound, 9.98, true), Vec::<String>::new());
        let mut bounded = spec(10);
        bounded.write_bytes_max = Some(4096 * 1000);
        let found = notes(&bounded, &sound, 1.2, true);
        assert!(found[0].contains("--max-write 4000K was used up"), "{found:?}");
    }

    #[test]
    fn what_is_not_precise_says_how_long_it_needs() {
        let doubted = Verdicts::from_iter([Verdict::TooFewSamples]);
        // Five times the width needs 25 times the time, less a little.
        let wide = notes(&spec(2), &stream(1000.0, 149.9, Verdicts::none()), 2.0, true);
        assert_eq!(wide, ["for an interval within 3.0 % measure about 49.9 s: --runtime 50s"]);
        let narrow = notes(&spec(2), &stream(1000.0, 10.0, doubted.clone()), 2.0, true);
        assert_eq!(narrow, ["for an interval within 3.0 % measure about 4 s: --runtime 4s"]);
        let mut none = stream(1000.0, 10.0, doubted);
        if let Some(op) = none.ops.get_mut(OpKind::Write) {
            op.iops = Measured::without_interval(0.0, 0, Verdicts::none());
        }
        assert!(notes(&spec(2), &none, 2.0, true)[0].contains("try --runtime 20s"));
    }
}
