//! From one sample to the next: what is printed of each.

use iostrata_run::{Event, FileIo, TransactionStall, WatchSample};
use iostrata_target::TargetSample;

use crate::files::ToldFiles;
use crate::moment::{SampleMoment, TimedSample};
use crate::span::SampleSpan;
use crate::stalls::Stalls;

/// A target that is watched.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<SampleMoment>,
    /// What was last said of it; a target that took no new sample did what it did before.
    said: WatchSample,
    furious_flushes: Option<u64>,
    /// When it last told what it did with its files.
    files: Option<ToldFiles>,
    stalls: Stalls,
}

/// What a sample came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The sample with its rates.
    pub sample: WatchSample,
    /// The stall that goes on, or has just ended, as far as it is known. A later one with the same
    /// start replaces it.
    pub stall: Option<TransactionStall>,
}

impl Watched {
    /// The event that keeps it.
    pub fn event(&self) -> Event {
        Event::Sampled { sample: Box::new(self.sample.clone()), stall: self.stall.clone() }
    }
}

impl Watch {
    /// Takes the next sample.
    pub fn take(&mut self, seen: TimedSample) -> Watched {
        let mut said = match &seen.sample {
            Ok(sample) => {
                let stolen_pct = seen.on_host.held.cpu_stolen_pct;
                let moment = SampleMoment { at_s: seen.at_s, sample: *sample, stolen_pct };
                return self.answered(moment, seen);
            }
            Err(error) => WatchSample { error: Some(error.to_string()), ..WatchSample::default() },
        };
        let code = seen.sample.err().map_or_else(String::new, |error| error.code);
        let stall = self.stalls.refused(seen.at_s, code);
        (said.t_s, said.sample_us) = (seen.at_s, seen.sample_us);
        seen.on_host.beside(&mut said);
        said.furious_flushes = self.furious_flushes;
        Watched { sample: said, stall }
    }

    fn answered(&mut self, moment: SampleMoment, seen: TimedSample) -> Watched {
        let last = self.last.replace(moment);
        let is_same = last.is_some_and(|last| {
            moment.sample.taken_us.is_some() && last.sample.taken_us == moment.sample.taken_us
        });
        let mut stall = None;
        if !is_same {
            let restarted =
                last.is_some_and(|last| moment.sample.was_restarted_since(&last.sample));
            let span = last.as_ref().and_then(|last| SampleSpan::between(last, &moment));
            let files = self.file_io(&moment, restarted);
            self.said = WatchSample { files, ..self.figures(&moment.sample, span) };
            self.said.restarted = restarted;
            if restarted {
                self.stalls.forget();
            }
            let found = self.stalls.take(moment);
            self.said.stalled = found.is_going;
            if let Some(going) = found.stall.as_ref().filter(|_| found.is_going) {
                self.said.stall_cause = Some(going.cause);
                self.said.stall_evidence = Some(going.evidence.clone());
            }
            stall = found.stall;
        } else {
            self.said.restarted = false;
        }
        let mut sample = self.said.clone();
        (sample.t_s, sample.sample_us) = (seen.at_s, seen.sample_us);
        seen.on_host.beside(&mut sample);
        Watched { sample, stall }
    }

    /// What was done with files since it was told before. A target that is asked seldom, because it
    /// takes long to answer, did since then what it did before.
    fn file_io(&mut self, now: &SampleMoment, restarted: bool) -> Option<FileIo> {
        let before = if restarted { self.files.take() } else { self.files };
        let Some(table) = now.sample.files else {
            return self.said.files.take().filter(|_| !restarted);
        };
        let told = ToldFiles { at_s: now.taken_s(), table };
        self.files = Some(told);
        told.since(&before.filter(|_| !restarted)?)
    }

    /// The figures of a sample, and of the time since the one before.
    fn figures(&mut self, now: &TargetSample, span: Option<SampleSpan<'_>>) -> WatchSample {
        let per_s = |field: crate::span::SampleField| span.and_then(|span| span.per_s(field));
        let pct = |part: Option<u64>, whole: Option<u64>| {
            let whole = whole.filter(|whole| *whole > 0)?;
            Some(100.0 * part? as f64 / whole as f64)
        };
        if let Some(more) = span.and_then(|span| span.grown(|one| one.furious_flushes)) {
            self.furious_flushes = Some(self.furious_flushes.unwrap_or(0).saturating_add(more));
        } else if now.furious_flushes.is_some() {
            self.furious_flushes.get_or_insert(0);
        }
        let redo_bytes_per_s = per_s(|one| one.redo_end_bytes);
        let (tps, flushed) = (per_s(|one| one.transactions), per_s(|one| one.pages_flushed));
        let (age, limit) = (now.checkpoint_age_bytes, now.checkpoint_age_limit_bytes);
        let left = age.zip(limit).map(|(age, limit)| limit.saturating_sub(age) as f64);
        WatchSample {
            tps,
            checkpoint_age_bytes: age,
            checkpoint_age_limit_bytes: limit,
            checkpoint_age_async_bytes: now.checkpoint_age_async_bytes,
            checkpoint_age_sync_bytes: now.checkpoint_age_sync_bytes,
            checkpoint_age_pct: pct(age, limit),
            redo_bytes_per_s,
            redo_seconds_left: ratio(left, redo_bytes_per_s),
            dirty_pages: now.dirty_pages,
            dirty_pct: pct(now.dirty_pages, now.pool_pages),
            flushed_pages_per_s: flushed,
            flush_adaptive_pages_per_s: per_s(|one| one.pages_flushed_adaptive),
            flush_lru_pages_per_s: per_s(|one| one.pages_flushed_lru),
            flush_background_pages_per_s: per_s(|one| one.pages_flushed_background),
            flush_sync_pages_per_s: per_s(|one| one.pages_flushed_for_redo),
            furious_flushes: self.furious_flushes,
            pages_written_per_txn: ratio(flushed, tps),
            history_list_length: now.history_list_length,
            purge_per_s: per_s(|one| one.purged),
            pending_reads: now.pending_reads,
            pending_writes: now.pending_writes,
            pending_syncs: now.pending_syncs,
            row_locks_waiting: now.row_locks_waiting,
            sessions_running: now.sessions_running,
            oldest_transaction_s: now.oldest_transaction.map(|one| one.age_s as f64),
            oldest_transaction_id: now.oldest_transaction.and_then(|one| one.id),
            ..WatchSample::default()
        }
    }
}

/// One by the other, where the other is not zero.
fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    Some(above? / below.filter(|below| *below > 0.0)?)
}

#[cfg(test)]
mod tests;
