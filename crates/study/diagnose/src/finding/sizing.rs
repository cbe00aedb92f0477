//! Facts that settings have to match: commits per second, pages flushed per second.
//!
//! They rest on the planned replicates, at least three: nothing was suspected, so that nothing has
//! to be confirmed.

use iostrata_plan::{Layer, rung};
use iostrata_stats::PAIRS_MIN;
use iostrata_stats::units::{count, microseconds};

use super::place::barriers_off;
use super::steady::lasting_pages_per_s;
use crate::below::in_memory;
use crate::case::Case;
use crate::database::{Database, Level, Shortfall};
use crate::figure::application_latency_us;
use crate::statement::Statement;

/// The name of the flush capacity in the catalogue.
pub(crate) const FLUSH_CAPACITY: &str = "flush_capacity";
/// The name of what flushing costs reads.
pub(crate) const READ_INTERFERENCE: &str = "flush_read_interference";
/// How many times longer reads must take while pages are flushed.
const READS_FACTOR_MIN: f64 = 3.0;
/// How much longer they must take, in microseconds.
const READS_EXTRA_US_MIN: f64 = 1_000.0;

pub(crate) fn flush_capacity(case: &Case<'_, '_>) -> Option<Statement> {
    let database = Database::of(case.log);
    let Some(level) = database.carried() else { return nothing_carried(&database) };
    if level.n < PAIRS_MIN as u64 {
        return None;
    }
    let missed_at = database.first_missed();
    let commit_objective = database.commit_objective_us()?;
    let lasting = lasting_pages_per_s(case).filter(|&lasting| lasting < level.pages_per_s);
    let most = match (missed_at, lasting) {
        (Some(next), _) => {
            format!("; at {} pages/s {}", count(next.pages_per_s), missed(&database, next))
        }
        (None, Some(_)) => String::new(),
        (None, None) if database.highest() == Some(level.pages_per_s) => {
            "; every rate that was tried held".to_owned()
        }
        (None, None) => "; higher rates stayed undecided".to_owned(),
    };
    let lasts = lasting.map(|pages| {
        format!(
            " Only {} last: after the first writes the device takes {} writes/s, and the \
             doublewrite writes every page twice.",
            count(pages),
            count(2.0 * pages)
        )
    });
    let text = format!(
        "Beside commits and reads, {} pages of 16 KiB per second can be flushed, doublewrite \
         included, while {} % of commits take less than {}{most}.{}",
        count(level.pages_per_s),
        database.commit_percent,
        microseconds(commit_objective),
        lasts.unwrap_or_default()
    );
    let found = Statement::new(Layer::Transactions, level.n, text)
        .with("pages_per_s", level.pages_per_s)
        .with_some("pages_per_s_lasting", lasting)
        .with_some("pages_per_s_missed", missed_at.map(|next| next.pages_per_s))
        .with_some("read_p99_us", level.read.map(|read| read.us))
        .with_some("read_p99_objective_us", database.read_objective_us())
        .with("read_percentile", database.read_percent);
    Some(with_level(found, &database, level))
}

/// The figures of a level.
fn with_level(found: Statement, database: &Database, level: &Level) -> Statement {
    found
        .with("commit_percentile", database.commit_percent)
        .with("commit_p99_us", level.commit.us)
        .with_some("commit_p99_us_ci95", level.commit.us_ci95.map(|ci95| ci95.to_vec()))
        .with("commit_mean_us", level.commit_mean_us)
        .with_some("commit_p99_objective_us", database.commit_objective_us())
        .with("pages_per_s_written", level.pages_done_per_s)
}

/// No rate of pages is known to keep the objective: stated without a size to set.
fn nothing_carried(database: &Database) -> Option<Statement> {
    let least = database.first_missed().filter(|level| level.n >= PAIRS_MIN as u64)?;
    let objective_us = database.commit_objective_us()?;
    let text = format!(
        "Flushing {} pages of 16 KiB per second already misses the objective: {} (objective {}). No \
         lower rate that was tried is known to hold.",
        count(least.pages_per_s),
        missed(database, least),
        microseconds(objective_us)
    );
    let found = Statement::new(Layer::Transactions, least.n, text)
        .with("pages_per_s_missed", least.pages_per_s);
    Some(with_level(found, database, least))
}

/// What of the objective a level missed.
fn missed(database: &Database, level: &Level) -> String {
    if let Some(Shortfall { what, asked, done }) = level.shortfall {
        return format!("only {} of {} {what}/s are done", count(done), count(asked));
    }
    match (database.commit_objective_us(), level.read) {
        (Some(objective), _) if level.commit.us > objective => {
            let percent = database.commit_percent;
            format!("p{percent} of commits is {}", microseconds(level.commit.us))
        }
        (_, Some(read)) => {
            format!("p{} of reads is {}", database.read_percent, microseconds(read.us))
        }
        _ => "it does not hold".to_owned(),
    }
}

pub(crate) fn read_interference(case: &Case<'_, '_>) -> Option<Statement> {
    let database = Database::of(case.log);
    let idle = database.idle()?;
    let level = database.carried().or_else(|| database.first_missed())?;
    let (alone, beside) = (idle.read_mean_us?, level.read_mean_us?);
    let much = beside >= READS_FACTOR_MIN * alone && beside - alone >= READS_EXTRA_US_MIN;
    let apart = level.read_mean_us_min? > idle.read_mean_us_max?;
    if !much || !apart || idle.n.min(level.n) < PAIRS_MIN as u64 {
        return None;
    }
    let text = format!(
        "Reads take {} while {} pages/s are flushed, {} without: misses of the buffer pool pay for \
         every burst of flushing.",
        microseconds(beside),
        count(level.pages_per_s),
        microseconds(alone)
    );
    Some(
        Statement::new(Layer::Transactions, level.n, text)
            .with("read_us_alone", alone)
            .with("read_us_flushing", beside)
            .with("pages_per_s", level.pages_per_s),
    )
}

pub(crate) fn commit_rate(case: &Case<'_, '_>) -> Option<Statement> {
    let one = case.log.seen(rung::COMMIT_FDATASYNC)?;
    let figure = one.figure()?;
    if one.replicates.len() < PAIRS_MIN {
        return None;
    }
    let each_us = one.mean(application_latency_us)?;
    let many = case
        .log
        .seen(rung::COMMIT_FDATASYNC_16)
        .and_then(|seen| seen.figure())
        .map(|figure| figure.value);
    let more =
        many.map(|rate_of_16| format!("; 16 make {}", count(rate_of_16))).unwrap_or_default();
    let is_lost = barriers_off(case).is_some() || in_memory(case.host).is_some();
    let durable = if is_lost { "" } else { "durable " };
    let text = format!(
        "One committer makes {} {durable}commits/s ({} each){more}.",
        count(figure.value),
        microseconds(each_us)
    );
    Some(
        Statement::new(Layer::FileApi, one.replicates.len() as u64, text)
            .with("commits_per_s", figure.value)
            .with("commit_us", each_us)
            .with_some("commits_per_s_of_16", many),
    )
}
