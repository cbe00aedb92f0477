//! The verdict in a few sentences.
//!
//! Invariant: the first states what a longer queue does on the disk and on flash; further ones
//! state what command queueing, spindles, a reader and today's kernel make of it. Each is left out
//! where it was not simulated.

use iostrata_run::{KernelThen, QueueComparison, QueueDevice, QueueQuestion, QueueRun};
use iostrata_stats::units::{grouped, microseconds};

use super::Cast;
use super::wording::{Size, at_index, effect_times, kernel, sentence, size};

/// The sentences; one that states it when nothing was simulated.
pub(super) fn headline(cast: &Cast<'_>, effects: &[QueueComparison]) -> Vec<String> {
    let Some(first) = cast.kernels().first().copied() else {
        return vec!["Nothing was simulated.".to_owned()];
    };
    let told = HeadlineFacts { cast, effects };
    let all = [
        told.queue(first),
        told.command_queue(first),
        told.spindles(first),
        told.reader(first),
        told.today(),
    ];
    let sentences: Vec<String> = all.into_iter().flatten().collect();
    if sentences.is_empty() {
        return vec![format!("{} simulated; nothing to compare.", counted(cast.runs.len()))];
    }
    sentences
}

fn counted(runs: usize) -> String {
    if runs == 1 { "1 run was".to_owned() } else { format!("{runs} runs were") }
}

/// What the sentences are made from.
struct HeadlineFacts<'a> {
    cast: &'a Cast<'a>,
    effects: &'a [QueueComparison],
}

impl HeadlineFacts<'_> {
    fn effect(
        &self,
        what: QueueQuestion,
        device: Option<&QueueDevice>,
        kernel: KernelThen,
    ) -> Option<&QueueComparison> {
        let device = &device?.device;
        let is = |effect: &&QueueComparison| {
            effect.what == what && effect.device == *device && effect.kernel == kernel
        };
        self.effects.iter().find(is)
    }

    /// What a longer queue does on the disk and on flash.
    fn queue(&self, at: KernelThen) -> Option<String> {
        let of = |device| self.effect(QueueQuestion::NrRequests, device, at);
        let on = |device: Option<&QueueDevice>, effect: &QueueComparison| {
            Some(format!("{} on {}", did(effect), device?.title))
        };
        let (disk, flash) = (of(self.cast.disk), of(self.cast.flash));
        let parts: Vec<String> = [
            disk.and_then(|effect| on(self.cast.disk, effect)),
            flash.and_then(|effect| on(self.cast.flash, effect)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let effect = disk.or(flash)?;
        Some(sentence(&format!(
            "raising nr_requests from {} to {} {}, with {} at {}",
            effect.from.trim_start_matches("nr_requests "),
            effect.to.trim_start_matches("nr_requests "),
            parts.join(" and "),
            kernel(at),
            at_index(effect.index_bytes)
        )))
    }

    fn command_queue(&self, at: KernelThen) -> Option<String> {
        let without = self.effect(QueueQuestion::NrRequests, self.cast.unqueued, at);
        let own = self.effect(QueueQuestion::CommandQueue, self.cast.disk, at);
        let parts = [
            own.map(|effect| format!("command queueing in the disk alone {}", did(effect))),
            without.map(|effect| format!("without it the larger nr_requests {}", did(effect))),
        ];
        join(parts.into_iter())
    }

    fn spindles(&self, at: KernelThen) -> Option<String> {
        let array = self.cast.array?;
        let own = self.effect(QueueQuestion::Spindles, Some(array), at);
        let queue = self.effect(QueueQuestion::NrRequests, Some(array), at);
        let parts = [
            own.map(|effect| {
                format!("{} spindles instead of {} {}", array.spindles, self.few(), did(effect))
            }),
            queue.map(|effect| format!("on them the larger nr_requests {}", did(effect))),
        ];
        join(parts.into_iter())
    }

    fn few(&self) -> u32 {
        self.cast.disk.map_or(1, |disk| disk.spindles)
    }

    /// What the larger queue costs a reader on the disk, and on flash.
    fn reader(&self, at: KernelThen) -> Option<String> {
        let disk = self.cast.disk?;
        let effect = self.effect(QueueQuestion::Reader, Some(disk), at)?;
        let [small, large] = self.cast.ends(disk, at)?;
        let p99 = |run: &QueueRun| {
            let reader = run.reader.as_ref()?;
            Some(microseconds(reader.latency_us.p99))
        };
        let change = match size(effect) {
            Size::More => "makes a reader beside the inserts wait longer",
            Size::Less => "lets a reader beside the inserts wait less",
            Size::Nothing => "changes nothing for a reader beside the inserts",
            Size::Unclear => "makes no measurable difference to a reader beside the inserts",
            Size::Unsteady => "leaves open what a reader waits beside the inserts",
            Size::Unknown => {
                "changes, from too few replicates, what a reader waits beside the inserts"
            }
        };
        Some(sentence(&format!(
            "the larger queue {change}: 99th percentile {} instead of {} ({})",
            p99(large)?,
            p99(small)?,
            effect_times(effect)
        )))
    }

    /// What today's kernel takes of the largest queue, and what is left to gain with it.
    fn today(&self) -> Option<String> {
        let disk = self.cast.disk?;
        let runs = self.cast.of_device(disk, KernelThen::Today);
        let last = runs.last()?;
        let taken = if last.nr_requests_taken == last.nr_requests {
            format!("takes nr_requests {}", grouped(last.nr_requests))
        } else {
            format!(
                "takes {} where {} is requested",
                grouped(last.nr_requests_taken),
                grouped(last.nr_requests)
            )
        };
        let gain = self.effect(QueueQuestion::NrRequests, Some(disk), KernelThen::Today);
        let gain = gain.map(|effect| format!("which {}", did(effect)));
        let sorted: Vec<String> = self
            .effects
            .iter()
            .filter(|effect| effect.what == QueueQuestion::Kernel)
            .map(|effect| format!("{} those of {}", effect_times(effect), effect.from))
            .collect();
        let smallest = runs.first().map_or(0, |run| run.nr_requests);
        let sorted = (!sorted.is_empty()).then(|| {
            format!(
                "with {} its rows per hour are {}: it writes each file back in its order",
                grouped(smallest),
                sorted.join(" and ")
            )
        });
        let parts = [Some(format!("today's kernel {taken}")), gain].into_iter().flatten();
        let first = parts.collect::<Vec<_>>().join(", ");
        Some(sentence(&[Some(first), sorted].into_iter().flatten().collect::<Vec<_>>().join("; ")))
    }
}

fn join(parts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.flatten().collect();
    (!parts.is_empty()).then(|| sentence(&parts.join("; ")))
}

/// What became of rows per hour: `inserts 4.12x [4.01, 4.23] the rows per hour`.
fn did(effect: &QueueComparison) -> String {
    let ratio = effect_times(effect);
    match size(effect) {
        Size::More => format!("brings {ratio} the rows per hour"),
        Size::Less => format!("lowers rows per hour to {ratio}"),
        Size::Nothing => format!("changes rows per hour by less than 5 % ({ratio})"),
        Size::Unclear => format!("makes no measurable difference to rows per hour ({ratio})"),
        Size::Unsteady => {
            format!("brings about {ratio} the rows per hour (not steady enough to conclude from)")
        }
        Size::Unknown => format!("brings {ratio} the rows per hour (too few replicates)"),
    }
}
