//! One run over another that differs in one thing, at the same index size.
//!
//! Invariant: replicates are paired by their place, which has the same seed in every run, so that
//! what chance does to both sides alike cancels.

use iostrata_run::{KernelThen, QueueComparison, QueueDevice, QueuePoint, QueueQuestion, QueueRun};
use iostrata_stats::units::grouped;
use iostrata_stats::{Conclusion, Verdict, paired};

use super::Cast;
use super::wording::{Size, at_index, effect_times, kernel, sentence, size};

/// Every effect that the runs allow, by question.
pub(super) fn effects(cast: &Cast<'_>) -> Vec<QueueComparison> {
    let mut all = Vec::new();
    for kernel in cast.kernels() {
        for device in cast.devices {
            if let Some([first, last]) = cast.ends(device, kernel) {
                all.extend(effect(cast, QueueQuestion::NrRequests, first, last));
                all.extend(effect(cast, QueueQuestion::Reader, first, last));
            }
        }
        all.extend(beside(cast, QueueQuestion::CommandQueue, cast.unqueued, cast.disk, kernel));
        all.extend(beside(cast, QueueQuestion::Spindles, cast.disk, cast.array, kernel));
    }
    all.extend(kernels(cast));
    all.sort_by_key(|effect| effect.what);
    all
}

/// Two devices with the smallest queue.
fn beside(
    cast: &Cast<'_>,
    what: QueueQuestion,
    from: Option<&QueueDevice>,
    to: Option<&QueueDevice>,
    kernel: KernelThen,
) -> Option<QueueComparison> {
    let smallest = |device: &QueueDevice| cast.of_device(device, kernel).first().copied();
    effect(cast, what, smallest(from?)?, smallest(to?)?)
}

/// Today's kernel against the kernel of 2009: both with the smallest queue, and today's smallest
/// against the largest of 2009.
fn kernels(cast: &Cast<'_>) -> Vec<QueueComparison> {
    let Some(disk) = cast.disk else { return Vec::new() };
    let [then, today] = KernelThen::ALL.map(|kernel| cast.of_device(disk, kernel));
    let Some(&now) = today.first() else { return Vec::new() };
    let mut from: Vec<&QueueRun> = then.first().into_iter().chain(then.last()).copied().collect();
    from.dedup_by_key(|run| run.nr_requests);
    from.into_iter().filter_map(|run| effect(cast, QueueQuestion::Kernel, run, now)).collect()
}

fn effect(
    cast: &Cast<'_>,
    what: QueueQuestion,
    from: &QueueRun,
    to: &QueueRun,
) -> Option<QueueComparison> {
    let figures = |run| figures(what, compared(run)?);
    let (first, second) = (figures(from)?, figures(to)?);
    // One run may have more replicates; those that it has alone have no pair.
    let pairs = first.len().min(second.len());
    let comparison = paired(first.get(..pairs)?, second.get(..pairs)?).ok()?;
    let device = cast.devices.iter().find(|device| device.device == to.device)?;
    let mut found = QueueComparison {
        what,
        device: to.device.clone(),
        kernel: to.kernel,
        from: name(cast, what, from),
        to: name(cast, what, to),
        index_bytes: to.index_bytes,
        ratio: comparison.ratio.value,
        ratio_ci95: comparison.ratio.ci95,
        ratio_n: comparison.ratio.n,
        conclusion: comparison.conclusion,
        text: String::new(),
    };
    let is_steady = [from, to]
        .iter()
        .all(|run| compared(run).is_some_and(|point| !point.verdicts.has(Verdict::NotSteady)));
    if what != QueueQuestion::Reader && !is_steady {
        // What one of both got into by chance would be taken for what the other makes of it.
        (found.ratio_ci95, found.conclusion) = (None, Conclusion::NoMeasurableDifference);
    }
    found.text = text(&found, device);
    Some(found)
}

/// The point at which the runs are compared.
fn compared(run: &QueueRun) -> Option<&QueuePoint> {
    run.points.iter().find(|point| point.index_bytes == run.index_bytes)
}

/// The replicates of the figure in question.
fn figures(what: QueueQuestion, point: &QueuePoint) -> Option<Vec<f64>> {
    match what {
        QueueQuestion::Reader => {
            point.replicates.iter().map(|replicate| replicate.reader_us_p99).collect()
        }
        _ => Some(point.replicates.iter().map(|replicate| replicate.rows_per_hour).collect()),
    }
}

/// What one side of a comparison is called: what differs in it.
fn name(cast: &Cast<'_>, what: QueueQuestion, run: &QueueRun) -> String {
    let nr_requests = format!("nr_requests {}", grouped(run.nr_requests));
    match what {
        QueueQuestion::NrRequests | QueueQuestion::Reader => nr_requests,
        QueueQuestion::CommandQueue | QueueQuestion::Spindles => {
            let device = cast.devices.iter().find(|device| device.device == run.device);
            device.map_or_else(|| run.device.clone(), |device| device.title.clone())
        }
        QueueQuestion::Kernel => format!("{}, {nr_requests}", kernel(run.kernel)),
    }
}

fn text(effect: &QueueComparison, device: &QueueDevice) -> String {
    let ratio = effect_times(effect);
    let (from, to) = (&effect.from, &effect.to);
    let what = match effect.what {
        QueueQuestion::Reader => "the 99th percentile of a reader beside the inserts",
        _ => "rows per hour",
    };
    let did = match size(effect) {
        Size::More => format!("gives {ratio} {what}"),
        Size::Less => format!("lowers {what} to {ratio}"),
        Size::Nothing => format!("changes {what} by less than 5 % ({ratio})"),
        Size::Unknown => {
            format!("gives {ratio} {what}, from too few replicates to tell how surely")
        }
        Size::Unclear => format!("has no measurable effect on {what} ({ratio})"),
        Size::Unsteady => format!("gives about {ratio} {what}, not steady enough to conclude from"),
    };
    let place = match effect.what {
        QueueQuestion::NrRequests | QueueQuestion::Reader => {
            format!("{}, {}", device.title, kernel(effect.kernel))
        }
        QueueQuestion::CommandQueue | QueueQuestion::Spindles => kernel(effect.kernel).to_owned(),
        QueueQuestion::Kernel => device.title.clone(),
    };
    sentence(&format!(
        "{place}, at {}: {to} instead of {from} {did}, n = {}",
        at_index(effect.index_bytes),
        effect.ratio_n
    ))
}
