//! How long commits took, where a server counts that: MySQL from 8.0 on.
//!
//! Invariant: only what the statement COMMIT took counts; one that commits by itself is not told
//! apart from what it did.

use std::collections::BTreeMap;

use mysql::Conn;

use crate::connect::texts;

const SQL: &str = "SELECT h.BUCKET_TIMER_HIGH, SUM(h.COUNT_BUCKET) FROM \
    performance_schema.events_statements_summary_by_digest d JOIN \
    performance_schema.events_statements_histogram_by_digest h ON h.DIGEST = d.DIGEST AND \
    h.SCHEMA_NAME <=> d.SCHEMA_NAME WHERE d.DIGEST_TEXT = 'COMMIT' AND h.COUNT_BUCKET > 0 GROUP BY \
    h.BUCKET_TIMER_HIGH";
const PS_PER_US: u64 = 1_000_000;

/// Commits since the start, by the upper bound of the time that they took, in microseconds; nothing
/// where the server does not tell.
pub(crate) fn commit_times(conn: &mut Conn) -> Option<BTreeMap<u64, u64>> {
    let rows = texts(conn, SQL).ok()?;
    let mut times = BTreeMap::new();
    for row in rows {
        let number = |at: usize| row.get(at)?.as_ref()?.parse::<u64>().ok();
        *times.entry(number(0)?.div_ceil(PS_PER_US)).or_default() += number(1)?;
    }
    Some(times)
}
