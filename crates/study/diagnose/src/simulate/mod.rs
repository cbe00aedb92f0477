//! The results of a simulated block queue: one run over another, the post compared with the model,
//! a verdict.
//!
//! Invariant: every sentence is made from figures of the runs with their intervals; what was not
//! simulated is not mentioned, and where model and post disagree both figures are named.
//! It simulates nothing.

mod contradict;
mod effects;
mod flush;
mod headline;
mod then;
mod wording;

use iostrata_run::{KernelThen, QueueDevice, QueueDocument, QueueRun};

pub use flush::conclude_flush;
pub(crate) use flush::{judge_model, misfit};
pub use then::QUEUE_POST_ROWS;

/// Fills in what follows from the devices and runs of a simulated block queue.
pub fn conclude_queue(document: &mut QueueDocument) {
    let cast = Cast::of(document);
    let effects = effects::effects(&cast);
    let then = then::rows(&cast);
    let headline = headline::headline(&cast, &effects);
    let contradictions = contradict::contradictions(&cast, &effects, &then);
    document.title =
        "Does a longer queue in the kernel help inserts into a B-tree index?".to_owned();
    (document.headline, document.contradictions) = (headline, contradictions);
    (document.effects, document.then) = (effects, then);
    document.then_source = then::SOURCE.to_owned();
    document.then_machine = then::MACHINE.to_owned();
    for run in &document.runs {
        document.verdicts.merge(&run.verdicts);
    }
}

/// Which device plays which part.
struct Cast<'a> {
    runs: &'a [QueueRun],
    devices: &'a [QueueDevice],
    /// The rotating device that the others are compared with: the first with the fewest spindles.
    disk: Option<&'a QueueDevice>,
    /// The same with one command at a time.
    unqueued: Option<&'a QueueDevice>,
    /// The rotating device with the most spindles, when they are more.
    array: Option<&'a QueueDevice>,
    /// The first device without seeks.
    flash: Option<&'a QueueDevice>,
}

impl<'a> Cast<'a> {
    fn of(document: &'a QueueDocument) -> Self {
        let devices = &document.devices;
        let rotating = || devices.iter().filter(|device| device.is_rotational);
        let with_queue = || rotating().filter(|device| device.queue_depth > 1);
        let fewest = with_queue().map(|device| device.spindles).min();
        let disk = with_queue().find(|device| Some(device.spindles) == fewest);
        let disk = disk.or(rotating().next());
        let beside = |other: &&QueueDevice| disk.is_some_and(|disk| disk != *other);
        let unqueued = rotating().filter(beside).find(|other| {
            other.queue_depth == 1 && disk.is_some_and(|disk| disk.spindles == other.spindles)
        });
        let array = with_queue().filter(beside).max_by_key(|other| other.spindles);
        let array = array.filter(|other| disk.is_some_and(|disk| other.spindles > disk.spindles));
        let flash = devices.iter().find(|device| !device.is_rotational);
        Self { runs: &document.runs, devices, disk, unqueued, array, flash }
    }

    /// The runs on a device under a kernel, by rising queue size.
    fn of_device(&self, device: &QueueDevice, kernel: KernelThen) -> Vec<&'a QueueRun> {
        let same = |run: &&QueueRun| run.device == device.device && run.kernel == kernel;
        let mut runs: Vec<&QueueRun> = self.runs.iter().filter(same).collect();
        runs.sort_by_key(|run| run.nr_requests);
        runs
    }

    /// The runs with the smallest and the largest queue; none where there is only one.
    fn ends(&self, device: &QueueDevice, kernel: KernelThen) -> Option<[&'a QueueRun; 2]> {
        match self.of_device(device, kernel).as_slice() {
            [first, .., last] => Some([*first, *last]),
            _ => None,
        }
    }

    /// The kernels that were simulated, in order of time.
    fn kernels(&self) -> Vec<KernelThen> {
        let is_there = |kernel: &KernelThen| self.runs.iter().any(|run| run.kernel == *kernel);
        KernelThen::ALL.into_iter().filter(is_there).collect()
    }
}

#[cfg(test)]
mod tests;
