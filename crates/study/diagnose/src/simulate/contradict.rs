//! Where the model and the post disagree.
//!
//! Invariant: each sentence names both figures. The model is not bent to agree.

use iostrata_run::{KernelThen, QueueComparison, QueueQuestion, QueueRun, QueueThenRow};
use iostrata_stats::paired;
use iostrata_stats::units::{count, grouped};

use super::Cast;
use super::wording::{Size, effect_times, size, times};

/// Figures farther apart than this many times disagree: the post prints one reading of one run on
/// another machine.
const APART: f64 = 2.0;
/// Rates below this on both sides are noise: less than a request in a second.
const NOISE_PER_S: f64 = 1.0;

/// The sentences; none where they agree.
pub(super) fn contradictions(
    cast: &Cast<'_>,
    effects: &[QueueComparison],
    then: &[QueueThenRow],
) -> Vec<String> {
    let mut all: Vec<String> = said(cast, effects).into_iter().collect();
    all.extend(between(cast));
    let mut moments: Vec<&str> = then.iter().map(|row| row.moment.as_str()).collect();
    moments.dedup();
    all.extend(moments.into_iter().filter_map(|moment| figures(moment, then)));
    all
}

/// The post claims: a larger queue is very helpful for the disk, not helpful for flash; command
/// queueing saves seeks and turns.
fn said(cast: &Cast<'_>, effects: &[QueueComparison]) -> Vec<String> {
    let of = |device: Option<&iostrata_run::QueueDevice>| {
        let device = &device?.device;
        effects.iter().find(|effect| {
            effect.what == QueueQuestion::NrRequests
                && effect.device == *device
                && effect.kernel == KernelThen::Y2009
        })
    };
    let disk = of(cast.disk).filter(|effect| !matches!(size(effect), Size::More | Size::Unsteady));
    let flash = of(cast.flash).filter(|effect| matches!(size(effect), Size::More | Size::Less));
    let disk = disk.map(|effect| {
        format!(
            "The post finds a larger queue very helpful on its disk; in the model it gives {} the \
             rows per hour.",
            effect_times(effect)
        )
    });
    let flash = flash.map(|effect| {
        format!(
            "The post finds a larger queue not helpful on flash; in the model it gives {} the rows \
             per hour.",
            effect_times(effect)
        )
    });
    let command_queue = effects.iter().find(|effect| {
        effect.what == QueueQuestion::CommandQueue && effect.kernel == KernelThen::Y2009
    });
    let command_queue = command_queue.filter(|effect| size(effect) == Size::Less).map(|effect| {
        format!(
            "The post has command queueing save seeks and turns; in the model it gives {} the rows \
             per hour with the smallest queue.",
            effect_times(effect)
        )
    });
    disk.into_iter().chain(flash).chain(command_queue).collect()
}

/// The post expects, untested, that queues between 128 and 100,000 lie between them in rows.
fn between(cast: &Cast<'_>) -> Option<String> {
    let runs = cast.of_device(cast.disk?, KernelThen::Y2009);
    let found = runs.windows(2).find_map(|pair| {
        let [less, more] = pair else { return None };
        let (first, second) = (rates(less), rates(more));
        let pairs = first.len().min(second.len());
        let ratio = paired(first.get(..pairs)?, second.get(..pairs)?).ok()?.ratio;
        ratio.is_below(0.95).then(|| (less, more, times(ratio.value, ratio.ci95)))
    });
    let (less, more, ratio) = found?;
    Some(format!(
        "The post expects more rows from every larger queue; in the model nr_requests {} gives \
         {ratio} those of {}.",
        grouped(more.nr_requests),
        grouped(less.nr_requests)
    ))
}

fn rates(run: &QueueRun) -> Vec<f64> {
    let point = run.points.iter().find(|point| point.index_bytes == run.index_bytes);
    let all = point.into_iter().flat_map(|point| &point.replicates);
    all.map(|replicate| replicate.rows_per_hour).collect()
}

/// The figures of one moment that are more than twice or less than half of the printed ones.
fn figures(moment: &str, then: &[QueueThenRow]) -> Option<String> {
    let of_moment = then.iter().filter(|row| row.moment == moment);
    let apart: Vec<String> = of_moment
        .filter_map(|row| {
            let (then, now) = (row.row.then?, row.row.now?);
            let is_rate = row.row.unit == "/s";
            let is_noise = is_rate && then < NOISE_PER_S && now < NOISE_PER_S;
            let apart = now > then * APART || now < then / APART;
            (apart && !is_noise).then(|| {
                let (name, _) = row.row.text.split_once(',').unwrap_or((&row.row.text, ""));
                format!(
                    "{name} {} (post {})",
                    figure(now, &row.row.unit),
                    figure(then, &row.row.unit)
                )
            })
        })
        .collect();
    (!apart.is_empty()).then(|| {
        format!("At {moment} the model is more than {APART} times off in: {}.", apart.join(", "))
    })
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        "/s" | "" => count(value),
        "ms" => iostrata_stats::units::microseconds(value * 1e3),
        unit => format!("{} {unit}", count(value)),
    }
}
