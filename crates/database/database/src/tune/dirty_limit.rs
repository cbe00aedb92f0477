//! The limit of dirty pages: where they come to it, a MySQL writes `innodb_io_capacity` pages,
//! whatever their age.
//!
//! In a small pool the pages that are dirty at the set-point are more than that. Then the limit
//! goes out of the way. A MariaDB that is awake for `innodb_max_dirty_pages_pct_lwm` does not look
//! at it.

use crate::tune::generation::Generation;
use crate::tune::lever::{Lever, LeverValues, Move};
use crate::tune::monitor::Vitals;

/// How near the limit dirty pages may come, in percent of the pool.
const CLEARANCE_PCT: f64 = 2.0;
/// The most that every server takes.
const OUT_OF_THE_WAY_PCT: f64 = 99.0;
/// From this share of the set-point on the age predicts how many pages will be dirty there.
const TELLING_SHARE: f64 = 0.5;

/// Raises the limit, where it is in the way of a set-point.
pub(crate) fn raised(
    now: &Vitals,
    present: &LeverValues,
    set_point_bytes: f64,
    generation: Generation,
) -> Option<Move> {
    let lever = Lever::MaxDirtyPagesPct;
    if generation == Generation::MariaDb {
        return None;
    }
    let (limit, pool) = (present.get(lever)?, now.pool_pages.filter(|pages| *pages > 0.0)?);
    let grows = set_point_bytes / now.modified_bytes.max(set_point_bytes * TELLING_SHARE);
    let expected_pct = 100.0 * now.dirty_pages * grows.max(1.0) / pool;
    if expected_pct <= limit - CLEARANCE_PCT || limit >= OUT_OF_THE_WAY_PCT {
        return None;
    }
    let why = format!(
        "{expected_pct:.0} % of the pool is dirty at the set-point; from {limit:.0} % on the server \
         would write all it may, whatever the age"
    );
    Some(Move { lever, to: OUT_OF_THE_WAY_PCT, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised_at(
        dirty_pages: f64,
        age: f64,
        limit_pct: f64,
        generation: Generation,
    ) -> Option<f64> {
        let now = Vitals {
            modified_bytes: age,
            dirty_pages,
            pool_pages: Some(1000.0),
            ..Vitals::default()
        };
        let mut present = LeverValues::default();
        present.set(Lever::MaxDirtyPagesPct, limit_pct);
        raised(&now, &present, 80.0, generation).map(|one| one.to)
    }

    #[test]
    fn it_is_raised_where_the_pages_at_the_set_point_come_to_it() {
        use Generation::{MariaDb, Mysql8, Mysql56};
        assert_eq!(raised_at(500.0, 60.0, 90.0, Mysql8), None, "67 % at the set-point");
        assert_eq!(raised_at(700.0, 60.0, 90.0, Mysql8), Some(99.0), "93 % at the set-point");
        assert_eq!(raised_at(600.0, 60.0, 75.0, Mysql56), Some(99.0));
        assert_eq!(raised_at(900.0, 80.0, 99.0, Mysql8), None, "it is out of the way");
        assert_eq!(raised_at(900.0, 80.0, 90.0, MariaDb), None, "it does not look at it");
        // A young load has few bytes of redo and many pages: that does not go on so.
        assert_eq!(raised_at(400.0, 1.0, 90.0, Mysql8), None);
    }
}
