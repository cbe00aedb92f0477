//! The checkpoint ages at which a server begins sync flushing, and at which it makes writers wait.
//!
//! Invariant: pure. A server's own figure takes precedence over a computed one; a version whose
//! rule is not known has none. The numbers are of 100 MiB of redo, as real servers report them.

use super::status_reply::StatusReply;
use crate::flavour::{Flavour, ServerVersion};

/// Ages of the redo, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgeLimits {
    /// At which writers wait.
    pub(crate) limit: Option<u64>,
    /// From which pages are flushed as fast as possible.
    pub(crate) flush_all: Option<u64>,
    /// From which flushing takes precedence over everything else.
    pub(crate) flush_first: Option<u64>,
    /// All of the redo.
    pub(crate) capacity: Option<u64>,
}

/// MySQL from 8.0.30 on: shares of the capacity in ten-thousandths (87,086,592 and 81,281,024
/// bytes).
const LIMIT_8: u64 = 8_305;
const FLUSH_ALL_8: u64 = 7_751;
/// MySQL before 8.0.30 (`log_calc_max_ages`): bytes at the head of each file, pages that every
/// thread may still write, threads of the server itself, pages on top of them.
const FILE_HEAD: u64 = 2_048;
const PAGES_PER_THREAD: u64 = 4;
const OWN_THREADS: u64 = 10;
const PAGES_MORE: u64 = 8;
/// From 8.0.15 to 8.0.29 these bytes at most are kept free for good, of small files a tenth; parts
/// of 512 bytes are counted.
const KEPT_FREE_MAX: u64 = 16 << 20;
const BLOCK: u64 = 512;

/// The limits of a server.
pub(crate) fn age_limits(told: &StatusReply, version: &ServerVersion) -> AgeLimits {
    let files = told.variable("innodb_log_files_in_group").unwrap_or(1);
    let in_files = || told.variable("innodb_log_file_size")?.checked_mul(files);
    let capacity = told.status("Innodb_redo_log_capacity_resized").or_else(in_files);
    let computed = capacity.map_or((None, None), |capacity| match version.flavour {
        Flavour::MariaDb | Flavour::TiDb | Flavour::Vitess | Flavour::Unknown => (None, None),
        Flavour::MySql | Flavour::Percona => match version.numbers {
            // Which release changed the rule is not known: the lower limit is the safe one.
            (..8, ..) | (8, 0, ..15) => before_8(told, capacity, files),
            (8, 0, ..30) => before_8_0_30(told, capacity, files),
            _ => (share(capacity, LIMIT_8), share(capacity, FLUSH_ALL_8)),
        },
    });
    let own = told.status("Innodb_checkpoint_max_age").or(told.text.age_max);
    // MariaDB begins sync flushing at seven eighths (73,689,801 of 84,216,915).
    let of_own = own.filter(|_| version.flavour == Flavour::MariaDb).map(|own| own - own / 8);
    let metric = |name: &str| told.metric(name).filter(|bytes| *bytes > 0);
    let flush_first = metric("log_max_modified_age_sync");
    AgeLimits {
        limit: own.or(flush_first).or(computed.0),
        flush_all: metric("log_max_modified_age_async")
            .or(told.text.age_target)
            .or(of_own)
            .or(computed.1),
        flush_first,
        capacity,
    }
}

fn share(bytes: u64, of_10000: u64) -> Option<u64> {
    u64::try_from(u128::from(bytes) * u128::from(of_10000) / 10_000).ok()
}

/// Redo that must stay free for what threads write until they look for it.
fn threads_bytes(told: &StatusReply) -> Option<u64> {
    let page = told.status("Innodb_page_size").unwrap_or(16_384);
    let threads = OWN_THREADS + told.variable("innodb_thread_concurrency").unwrap_or(0);
    page.checked_mul(threads.checked_mul(PAGES_PER_THREAD)? + PAGES_MORE)
}

/// Where users wait for a checkpoint, and where the age counts in full.
fn before_8_0_30(told: &StatusReply, capacity: u64, files: u64) -> (Option<u64>, Option<u64>) {
    let whole = |bytes: u64| bytes - bytes % BLOCK;
    let ages = || {
        let all = capacity.checked_sub(files.checked_mul(FILE_HEAD)?)?;
        let for_writer = whole(all - (all / 10).min(KEPT_FREE_MAX));
        let twentieth = whole(for_writer / 20);
        let for_users = for_writer - twentieth;
        let margin = threads_bytes(told)?.checked_add(twentieth)?;
        Some((for_users.checked_sub(margin)?, (for_users - for_users / 8).checked_sub(margin)?))
    };
    ages().unzip()
}

/// Where user threads flush themselves, and where the page cleaner begins sync flushing.
fn before_8(told: &StatusReply, capacity: u64, files: u64) -> (Option<u64>, Option<u64>) {
    let usable = || {
        let usable = capacity.checked_sub(files.checked_mul(FILE_HEAD)?)?;
        let left = (usable - usable / 10).checked_sub(threads_bytes(told)?)?;
        Some(left - left / 10)
    };
    let most = usable();
    (most.map(|most| most - most / 16), most.map(|most| most - most / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn told(
        status: &[(&str, u64)],
        variables: &[(&str, u64)],
        metrics: &[(&str, u64)],
    ) -> StatusReply {
        let named = |all: &[(&str, u64)]| {
            all.iter().map(|(name, number)| (name.to_string(), *number)).collect()
        };
        let (status, variables, metrics) = (named(status), named(variables), named(metrics));
        StatusReply { status, variables, metrics, ..StatusReply::default() }
    }

    fn of(told: &StatusReply, version: &str) -> AgeLimits {
        age_limits(told, &ServerVersion::recognise(version, "MySQL"))
    }

    #[test]
    fn mysql_5_6_is_computed_to_the_byte() {
        let files = [("innodb_log_file_size", 50 * MIB), ("innodb_log_files_in_group", 2)];
        let found = of(&told(&[], &files, &[]), "5.6.24");
        assert_eq!((found.limit, found.flush_all), (Some(78_959_579), Some(73_695_607)));
        assert_eq!(found.capacity, Some(100 * MIB));
    }

    /// Worked out by hand from the rule, not reported by a server.
    #[test]
    fn mysql_8_0_with_files_has_the_rule_of_its_release() {
        let files = |bytes| [("innodb_log_file_size", bytes), ("innodb_log_files_in_group", 2)];
        let small = told(&[], &files(50 * MIB), &[]);
        let early = of(&small, "8.0.11");
        assert_eq!((early.limit, early.flush_all), (Some(78_959_579), Some(73_695_607)));
        let late = of(&small, "8.0.21");
        assert_eq!((late.limit, late.flush_all), (Some(84_145_152), Some(72_938_944)));
        // Of large files less is kept free than a tenth.
        let large = of(&told(&[], &files(512 * MIB), &[]), "8.0.29").limit.unwrap();
        let share = large as f64 / (1024 * MIB) as f64;
        assert!((0.88..0.89).contains(&share), "{share}");
        let status = [("Innodb_redo_log_capacity_resized", 100 * MIB)];
        let newer = of(&told(&status, &[], &[]), "8.0.30").limit.unwrap();
        assert!(newer.abs_diff(87_086_592) < 10_000, "{newer}");
    }

    #[test]
    fn mysql_9_7_is_computed_to_a_thousandth_or_told() {
        let status = [("Innodb_redo_log_capacity_resized", 100 * MIB)];
        let found = of(&told(&status, &[], &[]), "9.7.4");
        assert!(found.limit.unwrap().abs_diff(87_086_592) < 10_000, "{found:?}");
        assert!(found.flush_all.unwrap().abs_diff(81_281_024) < 10_000, "{found:?}");
        let metrics =
            [("log_max_modified_age_sync", 87_086_592), ("log_max_modified_age_async", 81_281_024)];
        let found = of(&told(&status, &[], &metrics), "9.7.4");
        assert_eq!((found.limit, found.flush_all), (Some(87_086_592), Some(81_281_024)));
        assert_eq!(found.flush_first, Some(87_086_592));
    }

    #[test]
    fn mariadb_tells_its_limit_itself() {
        let status = [("Innodb_checkpoint_max_age", 84_216_915)];
        let files = [("innodb_log_file_size", 100 * MIB)];
        let found = of(&told(&status, &files, &[]), "11.4.5-MariaDB");
        assert_eq!((found.limit, found.flush_all), (Some(84_216_915), Some(73_689_801)));
        assert_eq!((found.capacity, found.flush_first), (Some(100 * MIB), None));
    }

    #[test]
    fn what_is_not_known_is_not_computed() {
        let files = [("innodb_log_file_size", 50 * MIB)];
        let found = of(&told(&[], &files, &[]), "10.2.1-MariaDB");
        assert_eq!((found.limit, found.flush_all), (None, None));
        let tiny = [("innodb_log_file_size", 1_000)];
        assert_eq!(of(&told(&[], &tiny, &[]), "5.6.24").limit, None);
    }
}
