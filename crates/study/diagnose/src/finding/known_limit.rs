//! A known limit that was used up.
//!
//! Invariant: a fact of the run. The group's own counters show it, so that nothing has to be
//! measured again, and it is there however early a run ended.

use std::collections::BTreeSet;

use iostrata_run::host::{CgroupVersion, IoLimit, LimitScope, LimitedRate};
use iostrata_stats::units::{bytes, count};

use crate::case::Case;
use crate::figure::median;

/// How far a limit must have been used, in percent: token buckets leave some of it over.
const USED_PCT_MIN: f64 = 90.0;
/// Replicates that must have used it so far.
const REPLICATES_MIN: usize = 3;

/// A limit that was used up.
#[derive(Clone, Debug)]
pub(crate) struct LimitHit<'a> {
    pub limit: &'a IoLimit,
    /// The rates that reached their bounds.
    pub rates: BTreeSet<LimitedRate>,
    /// The middle of how far it was used, in percent.
    pub used_pct: f64,
    /// Replicates that used it up.
    pub hit: usize,
    /// Replicates in all.
    pub measured: usize,
}

/// The limit that held most replicates back; `None` when none was reached three times.
pub(crate) fn reached<'a>(case: &Case<'_, 'a>) -> Option<LimitHit<'a>> {
    let all = || case.log.points().iter().flat_map(|seen| seen.replicates.iter().copied());
    let mut found: Vec<(&'a IoLimit, Vec<f64>, BTreeSet<LimitedRate>)> = Vec::new();
    for throttle in all().filter_map(|one| one.evidence.as_ref()?.throttle.as_ref()) {
        let (Some(limit), Some(used)) = (&throttle.io_limit, throttle.io_limit_used_pct) else {
            continue;
        };
        if used < USED_PCT_MIN {
            continue;
        }
        match found.iter_mut().find(|(other, ..)| *other == limit) {
            Some((_, of, rates)) => {
                of.push(used);
                rates.extend(throttle.io_limit_rate);
            }
            None => found.push((limit, vec![used], throttle.io_limit_rate.into_iter().collect())),
        }
    }
    let (limit, used, rates) = found.into_iter().max_by_key(|(_, used, _)| used.len())?;
    let hit = used.len();
    (hit >= REPLICATES_MIN).then_some(LimitHit {
        limit,
        rates,
        used_pct: median(used)?,
        hit,
        measured: all().count(),
    })
}

/// The bounds of a limit that count: those that were reached, or all where that is not known.
fn bounds(limit: &IoLimit, rates: &BTreeSet<LimitedRate>) -> Vec<(LimitedRate, u64)> {
    let counts = |rate: &LimitedRate| rates.is_empty() || rates.contains(rate);
    let known = LimitedRate::ALL.into_iter().filter(counts);
    known.filter_map(|rate| Some((rate, limit.bound(rate)?))).collect()
}

/// What a limit allows, in words.
pub(crate) fn limit_words(limit: &IoLimit) -> String {
    words_of(limit, &BTreeSet::new())
}

fn words_of(limit: &IoLimit, rates: &BTreeSet<LimitedRate>) -> String {
    let part = |(rate, bound): (LimitedRate, u64)| match rate {
        LimitedRate::Reads => format!("{} reads/s", count(bound as f64)),
        LimitedRate::Writes => format!("{} writes/s", count(bound as f64)),
        LimitedRate::ReadBytes => format!("{}/s read", bytes(bound as f64)),
        LimitedRate::WriteBytes => format!("{}/s written", bytes(bound as f64)),
    };
    bounds(limit, rates).into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// The files of the group that set a limit, and what lifts it when it is written to each.
pub(crate) fn lifting(limit: &IoLimit) -> Vec<(String, String)> {
    let set = bounds(limit, &BTreeSet::new());
    let number = limit.device_number;
    match limit.version {
        CgroupVersion::V2 => {
            let name = |rate: LimitedRate| match rate {
                LimitedRate::Reads => "riops=max",
                LimitedRate::Writes => "wiops=max",
                LimitedRate::ReadBytes => "rbps=max",
                LimitedRate::WriteBytes => "wbps=max",
            };
            let all: Vec<&str> = set.into_iter().map(|(rate, _)| name(rate)).collect();
            vec![("io.max".to_owned(), format!("{number} {}", all.join(" ")))]
        }
        CgroupVersion::V1 => {
            let name = |rate: LimitedRate| match rate {
                LimitedRate::Reads => "read_iops",
                LimitedRate::Writes => "write_iops",
                LimitedRate::ReadBytes => "read_bps",
                LimitedRate::WriteBytes => "write_bps",
            };
            let file = |rate| format!("blkio.throttle.{}_device", name(rate));
            set.into_iter().map(|(rate, _)| (file(rate), format!("{number} 0"))).collect()
        }
    }
}

impl LimitHit<'_> {
    /// What was found, in a sentence or two.
    pub fn sentence(&self) -> String {
        let of = match self.limit.scope {
            LimitScope::Process => "",
            LimitScope::WriteBack => " for write-back of the page cache",
        };
        let lift: Vec<String> = lifting(self.limit)
            .into_iter()
            .map(|(file, value)| format!("\"{value}\" to {file}"))
            .collect();
        format!(
            "The control group {} allows {} on {}{of}, and {} of {} measurements used {:.0} % of \
             that: the limit, not the device, set their pace. To lift it write {} of that group.",
            self.limit.cgroup,
            words_of(self.limit, &self.rates),
            self.limit.device,
            self.hit,
            self.measured,
            self.used_pct.min(100.0),
            lift.join(" and ")
        )
    }
}
