//! What the rungs below would allow of transactions: for each resource its rate divided by what one
//! transaction uses of it. The least of them binds.
//!
//! Invariants: a bound is one from above: every resource is taken at the best that was measured of
//! it for so many connections, and what is not counted bounds nothing. Syncs that were measured in
//! the same rounds are set against what was reached round by round; other rates are taken as
//! independent of it.

use iostrata_plan::rung;
use iostrata_run::{BoundResource, Replicate, Resource, ResourceUse, Rung, TransactionBound};
use iostrata_stats::{Measured, Verdicts, combine, loss_pct, paired_measured};

use crate::case::Case;
use crate::figure::metric_of;
use crate::observed::{EventIndex, PointLog, Which};

/// Bytes of a page, in which all of them are counted.
const PAGE_BYTES: f64 = 16_384.0;
const MIB: f64 = 1_048_576.0;
/// The basis of a share that compares each round with the bound of that round.
pub(crate) const PAIRED_ROUNDS: &str = "paired_rounds";
/// Commits of the storage, by the least connections for which they count.
const SYNCS: [(u32, &str); 3] =
    [(1, rung::COMMIT_FDATASYNC), (4, rung::COMMIT_FDATASYNC_4), (16, rung::COMMIT_FDATASYNC_16)];
/// Page reads, by the most connections for which they count.
const READS: [(u32, &str); 4] = [
    (1, rung::READ_16K_DEPTH_1),
    (8, rung::READ_16K_DEPTH_8),
    (16, rung::READ_16K_DEPTH_16),
    (u32::MAX, rung::READ_16K_DEPTH_32),
];
/// Page writes: the cleaners of a database have many in flight whatever its connections do.
const PAGE_WRITES: [&str; 3] =
    [rung::WRITE_16K_FILES_4, rung::WRITE_16K_FILES_8, rung::SUSTAINED_16K];

/// The rungs, those of transactions with their bounds.
pub(crate) fn with_bounds(mut rungs: Vec<Rung>, case: &Case<'_, '_>) -> Vec<Rung> {
    for seen in case.log.transactions() {
        // Without syncs nothing of the storage is waited for.
        if seen.point.id != rung::COMMITS_1_UNSYNCED
            && let Some(rung) = rungs.iter_mut().find(|rung| rung.name == seen.point.id)
        {
            rung.bound = BoundSearch { case, seen }.bound();
        }
    }
    rungs
}

/// What a resource allows.
#[derive(Clone, Debug, Default)]
struct ResourceAllowance {
    per_s: Option<Measured>,
    /// The same of each round of the rung, where it was measured in them.
    of_rounds: Vec<(u32, Measured)>,
    per_txn: Option<f64>,
    rungs: Vec<&'static str>,
}

/// A rung of transactions whose bound is wanted.
struct BoundSearch<'c, 'a> {
    case: &'c Case<'c, 'a>,
    seen: &'c PointLog<'a>,
}

impl BoundSearch<'_, '_> {
    fn bound(&self) -> Option<TransactionBound> {
        let all = Resource::ALL.map(|name| (name, self.allowed(name)));
        let known = all.iter().filter_map(|(name, of)| Some((*name, of, of.per_s.as_ref()?)));
        let (resource, binding, least) = known.min_by(|a, b| a.2.value.total_cmp(&b.2.value))?;
        let (basis, reached) = self.reached(binding, least)?;
        Some(TransactionBound {
            value: least.value,
            value_ci95: least.ci95,
            value_n: least.n,
            unit: self.seen.point.metric.unit.clone(),
            resource,
            reached_pct: reached.value,
            reached_pct_ci95: reached.ci95,
            reached_pct_n: reached.n,
            basis: basis.to_owned(),
            resources: all.iter().map(|(name, of)| of.resource(*name)).collect(),
        })
    }

    fn allowed(&self, resource: Resource) -> ResourceAllowance {
        match resource {
            Resource::Syncs => self.syncs(),
            Resource::LogWrites => self.log_writes(),
            Resource::PageWrites => {
                self.by_rate(self.fastest(PAGE_WRITES.into_iter()), |used| used.page_writes)
            }
            Resource::PageReads => {
                let id = READS.iter().find(|(most, _)| self.threads() <= *most).map(|(_, id)| *id);
                self.by_rate(self.fastest(id.into_iter()), |used| used.page_reads)
            }
            Resource::Cpu => self.cpu(),
        }
    }

    /// What was reached of the bound in percent, and on which basis.
    fn reached(
        &self,
        binding: &ResourceAllowance,
        least: &Measured,
    ) -> Option<(&'static str, Measured)> {
        let reached = |lost: Measured| lost.mapped(|pct| 100.0 - pct);
        let pair = |(number, allowed): &(u32, Measured)| {
            let one = self.seen.replicates.iter().find(|one| one.replicate == *number)?;
            Some((allowed.clone(), metric_of(one)?))
        };
        let rounds = binding.of_rounds.iter().filter_map(pair);
        let (allowed, of_rounds): (Vec<Measured>, Vec<Measured>) = rounds.unzip();
        if allowed.len() >= 2 {
            let lost = paired_measured(&allowed, &of_rounds).ok()?.loss_pct();
            return Some((PAIRED_ROUNDS, reached(lost)));
        }
        let lost = loss_pct(least, &self.seen.figure()?).ok()?;
        Some(("independent", reached(lost)))
    }

    fn threads(&self) -> u32 {
        self.seen.point.transactions.as_ref().map_or(1, |spec| spec.threads)
    }

    /// The fastest of some rungs of the storage, per second.
    fn fastest(&self, ids: impl Iterator<Item = &'static str>) -> Option<(&'static str, Measured)> {
        let log = self.case.log;
        let known = ids.filter_map(|id| Some((id, figure(log, id)?)));
        known.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
    }

    fn syncs(&self) -> ResourceAllowance {
        let redo = ResourceUse::redo_syncs_at_most;
        let binlog = |used: &ResourceUse| used.binlog_syncs;
        let per_txn = self
            .per_txn(|used| Some(used.redo_syncs_at_most()? + used.binlog_syncs.unwrap_or(0.0)));
        let ids = SYNCS.iter().filter(|(from, _)| *from <= self.threads()).map(|(_, id)| *id);
        let mut allowed =
            ResourceAllowance { per_txn: value(&per_txn), ..ResourceAllowance::default() };
        let Some((id, rate)) = self.fastest(ids) else { return allowed };
        let appended = figure(self.case.log, rung::APPEND_FDATASYNC);
        let of = |rate: &Measured, redo: &Measured, binlog: f64| {
            let redo = over(rate, redo);
            // A binary log is extended by every write.
            match (redo, appended.as_ref().filter(|_| binlog > 0.0)) {
                (Some(redo), Some(appended)) => {
                    Some(in_turn(&redo, &appended.scaled(1.0 / binlog)))
                }
                (redo, _) => redo,
            }
        };
        // Equal numbers of replicates are the same round only where both took turns.
        let rounds = match rung::in_turns_with(&self.seen.point.id) == Some(id) {
            true => self.case.log.replicates(id, Which::All),
            false => Vec::new(),
        };
        for one in &self.seen.replicates {
            let used = |take: fn(&ResourceUse) -> Option<f64>| of_one(one, take);
            let same = rounds.iter().find(|(number, _)| *number == one.replicate);
            if let (Some((number, disk)), Some(syncs)) = (same, used(redo))
                && let Some(rate) = metric_of(disk)
                && let Some(per_s) = of(&rate, &alone(syncs), used(binlog).unwrap_or(0.0))
            {
                allowed.of_rounds.push((*number, per_s));
            }
        }
        let of_rounds: Vec<Measured> =
            allowed.of_rounds.iter().map(|(_, per_s)| per_s.clone()).collect();
        allowed.per_s = combine(&of_rounds).or_else(|| {
            let binlog = self.per_txn(binlog).map_or(0.0, |measured| measured.value);
            of(&rate, &self.per_txn(redo)?, binlog)
        });
        allowed.rungs.push(id);
        if self.per_txn(binlog).is_some_and(|syncs| syncs.value > 0.0) && appended.is_some() {
            allowed.rungs.push(rung::APPEND_FDATASYNC);
        }
        allowed
    }

    fn log_writes(&self) -> ResourceAllowance {
        let bytes = |used: &ResourceUse| {
            Some(used.redo_bytes? + used.doublewrite_pages.unwrap_or(0.0) * PAGE_BYTES)
        };
        let rate = self.fastest([rung::SEQUENTIAL_WRITE_1M].into_iter());
        self.by_rate(rate.map(|(id, rate)| (id, rate.scaled(MIB))), bytes)
    }

    fn cpu(&self) -> ResourceAllowance {
        let machine = &self.case.host.machine;
        let per_txn = self.per_txn(|used| used.cpu_us);
        let allowed = machine.cpus_allowed.or(machine.cpus).map(f64::from);
        let quota = machine.cgroup.cpu_quota_cpus.unwrap_or(f64::INFINITY);
        // In addition to its connections a database has work in the background.
        let busy = f64::from(self.threads()) + 1.0;
        let per_s = allowed
            .zip(per_txn.as_ref())
            .and_then(|(cpus, per_txn)| over(&exact(cpus.min(quota).min(busy) * 1e6), per_txn));
        ResourceAllowance { per_s, per_txn: value(&per_txn), ..ResourceAllowance::default() }
    }

    fn by_rate(
        &self,
        rate: Option<(&'static str, Measured)>,
        take: fn(&ResourceUse) -> Option<f64>,
    ) -> ResourceAllowance {
        let per_txn = self.per_txn(take);
        let per_s = rate.as_ref().zip(per_txn.as_ref()).and_then(|((_, rate), of)| over(rate, of));
        let rungs = rate.iter().map(|(id, _)| *id).collect();
        ResourceAllowance { per_s, per_txn: value(&per_txn), rungs, ..ResourceAllowance::default() }
    }

    /// What one transaction uses, over all replicates; `None` where that was not counted.
    fn per_txn(&self, take: fn(&ResourceUse) -> Option<f64>) -> Option<Measured> {
        let each: Option<Vec<Measured>> =
            self.seen.replicates.iter().map(|one| of_one(one, take).map(alone)).collect();
        combine(&each?)
    }
}

impl ResourceAllowance {
    fn resource(&self, name: Resource) -> BoundResource {
        BoundResource {
            name,
            allows_per_s: value(&self.per_s),
            allows_per_s_ci95: self.per_s.as_ref().and_then(|per_s| per_s.ci95),
            per_txn: self.per_txn,
            unit: name.unit().to_owned(),
            rungs: self.rungs.iter().map(|id| (*id).to_owned()).collect(),
        }
    }
}

fn value(measured: &Option<Measured>) -> Option<f64> {
    measured.as_ref().map(|measured| measured.value)
}

/// A rung of the storage.
fn figure(log: &EventIndex<'_>, id: &str) -> Option<Measured> {
    log.seen(id)?.figure().filter(|figure| figure.value > 0.0)
}

/// What one transaction of a replicate used.
fn of_one(replicate: &Replicate, take: fn(&ResourceUse) -> Option<f64>) -> Option<f64> {
    let stream = replicate.streams.first()?;
    let used = stream.transactions.as_ref()?.used.as_ref()?;
    let completed: u64 = stream.ops.iter().map(|(_, op)| op.ios).sum();
    Some(take(used)? / (completed > 0).then_some(completed as f64)?)
}

/// A figure of one replicate, whose error shows between replicates.
fn alone(value: f64) -> Measured {
    Measured::without_interval(value, 1, Verdicts::none())
}

/// A figure that is known.
fn exact(value: f64) -> Measured {
    Measured::new(value, [value, value], u64::MAX, Verdicts::none())
}

/// How often a rate gives so much: relative half widths add as squares. `None` where nothing is
/// used.
fn over(rate: &Measured, per_txn: &Measured) -> Option<Measured> {
    if per_txn.value <= 0.0 || rate.value <= 0.0 {
        return None;
    }
    let of_use = Some(per_txn.relative_half_width()).filter(|width| width.is_finite());
    let width = of_rate(rate).map(|width| width.hypot(of_use.unwrap_or(0.0)));
    Some(with_width(rate.value / per_txn.value, width, rate.n.min(per_txn.n)))
}

/// Two things that are done one after the other, each so often per second.
fn in_turn(first: &Measured, second: &Measured) -> Measured {
    let both = 1.0 / (1.0 / first.value + 1.0 / second.value);
    let share = |one: &Measured| both / one.value;
    let widths = of_rate(first).zip(of_rate(second));
    let width = widths.map(|(a, b)| (a * share(first)).hypot(b * share(second)));
    with_width(both, width, first.n.min(second.n))
}

fn of_rate(rate: &Measured) -> Option<f64> {
    Some(rate.relative_half_width()).filter(|width| width.is_finite())
}

fn with_width(value: f64, width: Option<f64>, n: u64) -> Measured {
    match width.map(f64::exp).filter(|factor| factor.is_finite()) {
        Some(factor) => Measured::new(value, [value / factor, value * factor], n, Verdicts::none()),
        None => Measured::without_interval(value, n, Verdicts::none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value: f64, half: f64) -> Measured {
        Measured::new(value, [value - half, value + half], 30, Verdicts::none())
    }

    fn close(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_rate_is_shared_by_what_each_transaction_uses() {
        let allowed = over(&measured(12_000.0, 600.0), &alone(2.0)).unwrap();
        assert!(close(allowed.value, 6_000.0) && allowed.n == 1);
        let [low, high] = allowed.ci95.unwrap();
        // On the logarithmic scale the interval of the rate is kept as it is.
        assert!((high / low - 12_600.0 / 11_400.0).abs() < 1e-9, "{low} {high}");
        let both = over(&measured(1_000.0, 30.0), &measured(10.0, 0.4)).unwrap();
        let [low, high] = both.ci95.unwrap();
        let half = (high / low).ln() / 2.0;
        assert!((half - 0.03_f64.hypot(0.04)).abs() < 1e-4, "squares add: {half}");
        assert_eq!(over(&measured(1_000.0, 30.0), &alone(0.0)), None, "nothing is used");
        assert_eq!(over(&alone(1_000.0), &alone(2.0)).unwrap().ci95, None);
    }

    #[test]
    fn syncs_of_both_logs_are_waited_for_in_turn() {
        let both = in_turn(&measured(10_000.0, 500.0), &measured(2_500.0, 100.0));
        assert!(close(both.value, 2_000.0), "{both:?}");
        let [low, high] = both.ci95.unwrap();
        let half = (high / low).ln() / 2.0;
        // A fifth of the time has 5 %, four fifths have 4 %.
        assert!((half - 0.01_f64.hypot(0.032)).abs() < 1e-3, "{half}");
    }
}
