//! Findings: what is suspected, which points would confirm it, and what they said.
//!
//! Invariant: a finding about performance rests on confirming replicates alone, measured after its
//! suspicion was logged. Facts of the host and of the run (what is mounted, what was disturbed,
//! what the planned replicates measured) need no further points. One family per file.

mod above;
mod alignment;
mod cache;
mod capped;
mod fell;
mod flush;
mod id;
mod keeper;
mod known_limit;
mod machine;
mod pairs;
mod pauses;
mod place;
mod queue;
mod quota;
mod room;
mod seek;
mod sizing;
mod statement;
mod steady;
mod write_back;

use iostrata_plan::Point;
use iostrata_run::{Event, Finding, ProbeHost};

use crate::case::Case;
use crate::observed::{Observed, Which};
use crate::withheld::withhold;

use capped::explains_requests;
pub use id::FindingId;
pub(crate) use known_limit::{lifting, limit_words};
pub(crate) use pairs::telling;
pub(crate) use place::{in_memory, served_by_process};

/// Something that the points measured so far hint at.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspicion {
    /// The finding that it would become.
    pub id: FindingId,
    /// The points that confirm or clear it: known ones to be measured again, interleaved, at least
    /// three replicates each. Log [`Event::Suspected`] first.
    pub confirm: Vec<Point>,
}

/// What the events hint at and what would confirm it, the most telling first, so that a run that
/// ends early has confirmed what matters: a limit, which explains much of the rest; other losses;
/// facts and cautions. Suspicions whose confirming points have run are not raised again.
pub fn suspect(events: &[Event], host: &ProbeHost) -> Vec<Suspicion> {
    let log = Observed::of(events);
    let case = Case { log: &log, host };
    let raised = FindingId::ALL.iter().map(|&id| Suspicion { id, confirm: confirming(id, &case) });
    let mut open: Vec<Suspicion> = raised
        .filter(|suspicion| !suspicion.confirm.is_empty() && !has_run(&log, suspicion))
        .collect();
    open.sort_by_key(|suspicion| urgency(suspicion.id));
    open
}

/// What is confirmed first.
fn urgency(id: FindingId) -> u8 {
    use FindingId as Id;
    match id {
        Id::BurstLimit | Id::LimitAboveDevice | Id::LimitSetMeanwhile | Id::VolumeCap => 0,
        Id::PerFileWriteLock
        | Id::MixedFileLock
        | Id::FsyncJournalCost
        | Id::VolatileCacheFlushCost
        | Id::DirectIoIgnored => 1,
        Id::DsyncBeatsFdatasync
        | Id::ApiOverhead
        | Id::UnwrittenExtentCost
        | Id::AppendAllocationCost
        | Id::BufferedWriteCost => 2,
        _ => 3,
    }
}

fn has_run(log: &Observed<'_>, suspicion: &Suspicion) -> bool {
    let which = Which::Confirming(suspicion.id.name());
    let enough =
        |point: &Point| log.replicates(&point.id, which).len() >= iostrata_stats::PAIRS_MIN;
    suspicion.confirm.iter().all(enough)
}

/// The finding that a suspicion became, from its confirming replicates; `None` when they cleared it
/// or are not there.
pub fn conclude(suspicion: &Suspicion, events: &[Event], host: &ProbeHost) -> Option<Finding> {
    let log = Observed::of(events);
    conclude_one(suspicion.id, &Case { log: &log, host })
}

/// Every finding of a run.
pub(crate) fn findings_of(case: &Case<'_, '_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        FindingId::ALL.iter().filter_map(|&id| conclude_one(id, case)).collect();
    withhold(case, &mut findings);
    findings
}

/// The points that would confirm a finding; empty when nothing hints at it, or when it is a fact
/// that needs none.
fn confirming(id: FindingId, case: &Case<'_, '_>) -> Vec<Point> {
    use FindingId as Id;
    match id {
        Id::PerFileWriteLock
        | Id::MixedFileLock
        | Id::UnwrittenExtentCost
        | Id::AppendAllocationCost
        | Id::BufferedWriteCost
        | Id::FsyncJournalCost
        | Id::DsyncBeatsFdatasync
        | Id::ApiOverhead => pairs::confirming(id, case),
        Id::VolatileCacheFlushCost => flush::volatile_cache_confirming(case),
        Id::FlushSuspiciouslyCheap => flush::cheap_confirming(case),
        Id::NoGroupCommitGain => flush::no_gain_confirming(case),
        Id::LimitAboveDevice => above::confirming(case),
        Id::VolumeCap => capped::confirming(case),
        Id::BurstLimit | Id::LimitSetMeanwhile => fell::confirming(id, case),
        Id::SmallQueue => queue::small_queue_confirming(case),
        Id::SeekCost => seek::seek_cost_confirming(case),
        Id::RotationalFlagWrong => seek::flag_wrong_confirming(case),
        Id::DirectIoIgnored => cache::direct_ignored_confirming(case),
        Id::PageCacheAnswered => cache::cached_confirming(case),
        Id::SchedulerCost
        | Id::BarriersOff
        | Id::StorageFailed
        | Id::FileSystemBetween
        | Id::LoopWithoutDirectIo
        | Id::CacheBelow
        | Id::SyncMount
        | Id::LastingRate
        | Id::CpuQuota
        | Id::MisalignedStart
        | Id::NearlyFull
        | Id::NotALocalDisk
        | Id::SmallDirtyLimit
        | Id::AtomicWritesPromised
        | Id::WriteBuffer
        | Id::PeriodicPauses
        | Id::IrregularPauses
        | Id::MemoryLimit
        | Id::NotSteadyDevice
        | Id::ForeignIo
        | Id::Steal
        | Id::CpuBoundHost
        | Id::FlushReadInterference
        | Id::FlushCapacity
        | Id::CommitRate => Vec::new(),
    }
}

fn conclude_one(id: FindingId, case: &Case<'_, '_>) -> Option<Finding> {
    use FindingId as Id;
    match id {
        Id::PerFileWriteLock
        | Id::MixedFileLock
        | Id::UnwrittenExtentCost
        | Id::AppendAllocationCost
        | Id::BufferedWriteCost
        | Id::FsyncJournalCost
        | Id::DsyncBeatsFdatasync
        | Id::ApiOverhead => pairs::conclude(id, case),
        Id::VolatileCacheFlushCost => flush::volatile_cache(case),
        Id::FlushSuspiciouslyCheap => flush::cheap(case),
        Id::NoGroupCommitGain => flush::no_gain(case),
        Id::LimitAboveDevice => above::conclude(case),
        Id::VolumeCap => capped::conclude(case),
        Id::SchedulerCost => queue::scheduler_cost(case),
        Id::SmallQueue => queue::small_queue(case),
        Id::SeekCost => seek::seek_cost(case),
        Id::RotationalFlagWrong => seek::flag_wrong(case),
        Id::DirectIoIgnored => cache::direct_ignored(case),
        Id::PageCacheAnswered => cache::cached(case),
        Id::StorageFailed => room::storage_failed(case),
        Id::FileSystemBetween => place::file_system_between(case),
        Id::LoopWithoutDirectIo => place::loop_without_direct_io(case),
        Id::CacheBelow => place::cache_below(case),
        Id::SyncMount => place::sync_mount(case),
        Id::BarriersOff => place::barriers_off(case),
        Id::MisalignedStart => alignment::misaligned_start(case),
        Id::NearlyFull => room::nearly_full(case),
        Id::SmallDirtyLimit => write_back::small_dirty_limit(case),
        Id::NotALocalDisk => place::not_a_local_disk(case),
        Id::AtomicWritesPromised => place::atomic_writes_promised(case),
        Id::BurstLimit => steady::burst_limit(case).or_else(|| fell::allowance(case)),
        Id::LimitSetMeanwhile => fell::limit_set(case),
        Id::WriteBuffer => steady::write_buffer(case),
        Id::LastingRate => steady::lasting_rate(case),
        Id::PeriodicPauses => pauses::periodic(case),
        Id::IrregularPauses => pauses::irregular(case),
        Id::MemoryLimit => write_back::memory_limit(case),
        Id::NotSteadyDevice => steady::not_steady(case),
        Id::ForeignIo => machine::foreign_io(case),
        Id::Steal => machine::steal(case),
        Id::CpuQuota => quota::cpu_quota(case),
        Id::CpuBoundHost => machine::cpu_bound(case),
        Id::FlushReadInterference => sizing::read_interference(case),
        Id::FlushCapacity => sizing::flush_capacity(case),
        Id::CommitRate => sizing::commit_rate(case),
    }
}
