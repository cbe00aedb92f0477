//! What a member of the family does in one transaction.

use iostrata_database::target::Isolation;

use crate::oltp::distribution::{Chooser, Distribution, RandParameters};

/// A member of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// `oltp_read_write`.
    ReadWrite,
    /// `oltp_read_only`.
    ReadOnly,
    /// `oltp_write_only`.
    WriteOnly,
    /// `oltp_point_select`.
    PointSelect,
    /// `oltp_update_index`.
    UpdateIndex,
    /// `oltp_update_non_index`.
    UpdateNonIndex,
    /// `oltp_insert`.
    Insert,
    /// `oltp_delete`.
    Delete,
    /// `bulk_insert`, on tables of its own.
    BulkInsert,
    /// `select_random_points`.
    SelectRandomPoints,
    /// `select_random_ranges`.
    SelectRandomRanges,
}

impl Member {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::ReadWrite,
        Self::ReadOnly,
        Self::WriteOnly,
        Self::PointSelect,
        Self::UpdateIndex,
        Self::UpdateNonIndex,
        Self::Insert,
        Self::Delete,
        Self::BulkInsert,
        Self::SelectRandomPoints,
        Self::SelectRandomRanges,
    ];

    /// Its name, without `oltp_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "read_write",
            Self::ReadOnly => "read_only",
            Self::WriteOnly => "write_only",
            Self::PointSelect => "point_select",
            Self::UpdateIndex => "update_index",
            Self::UpdateNonIndex => "update_non_index",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::BulkInsert => "bulk_insert",
            Self::SelectRandomPoints => "select_random_points",
            Self::SelectRandomRanges => "select_random_ranges",
        }
    }

    /// What one of its transactions is.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ReadWrite => "14 reads and 4 writes in a transaction",
            Self::ReadOnly => "The reads of read_write",
            Self::WriteOnly => "The writes of read_write",
            Self::PointSelect => "One row by its key, no transaction",
            Self::UpdateIndex => "One update of an indexed column, no transaction",
            Self::UpdateNonIndex => "One update of a column without an index, no transaction",
            Self::Insert => "One new row, no transaction",
            Self::Delete => "One row removed, no transaction",
            Self::BulkInsert => {
                "Statements of 1000 new rows each, into an empty table for each session"
            }
            Self::SelectRandomPoints => "One select of rows with ten values of the indexed column",
            Self::SelectRandomRanges => "One count of rows within ten ranges of the indexed column",
        }
    }

    /// Whether it changes nothing.
    pub fn only_reads(self) -> bool {
        matches!(
            self,
            Self::ReadOnly
                | Self::PointSelect
                | Self::SelectRandomPoints
                | Self::SelectRandomRanges
        )
    }

    /// Whether its statements are one transaction; otherwise each is one.
    pub fn is_transaction(self) -> bool {
        matches!(self, Self::ReadWrite | Self::ReadOnly | Self::WriteOnly)
    }

    fn reads(self) -> bool {
        matches!(self, Self::ReadWrite | Self::ReadOnly)
    }

    fn writes(self) -> bool {
        matches!(self, Self::ReadWrite | Self::WriteOnly)
    }
}

/// How often each statement comes in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// By key.
    pub point_selects: u32,
    /// Ranges as they are.
    pub simple_ranges: u32,
    /// Sums of a range.
    pub sum_ranges: u32,
    /// Ordered ranges.
    pub order_ranges: u32,
    /// Distinct values of a range.
    pub distinct_ranges: u32,
    /// Of the column with an index.
    pub index_updates: u32,
    /// Of a column without one.
    pub non_index_updates: u32,
    /// A row is removed and put back.
    pub delete_inserts: u32,
    /// Selects of rows with some values of the column with an index.
    pub random_points: u32,
    /// Counts of rows with values within some ranges of it.
    pub random_ranges: u32,
    /// A new row.
    pub inserts: u32,
    /// A row is removed.
    pub deletes: u32,
    /// Many new rows in one statement.
    pub bulk_inserts: u32,
}

/// A workload of the family.
#[derive(Clone, Debug, PartialEq)]
pub struct OltpSpec {
    /// Which one.
    pub member: Member,
    /// Tables.
    pub tables: u32,
    /// Rows of each.
    pub table_size: i64,
    /// Rows of a range.
    pub range_size: i64,
    /// Statements of a transaction.
    pub counts: Counts,
    /// Every statement is a transaction of its own.
    pub skip_trx: bool,
    /// Values of a select of random points.
    pub points: u32,
    /// Ranges of a select of random ranges.
    pub ranges: u32,
    /// From the first to the last value of each.
    pub range_delta: i64,
    /// Sessions, between which random points and ranges are shared out.
    pub threads: u32,
    /// Which rows.
    pub distribution: Distribution,
    /// What it is drawn with.
    pub rand: RandParameters,
    /// Whether a server counts the ids up.
    pub auto_inc: bool,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Of transactions.
    pub isolation: Isolation,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
}

impl OltpSpec {
    /// A member with its defaults.
    pub fn new(member: Member) -> Self {
        let reads = u32::from(member.reads());
        let writes = u32::from(member.writes());
        let of = |one| u32::from(member == one);
        let counts = Counts {
            point_selects: if member == Member::PointSelect { 1 } else { 10 * reads },
            random_points: of(Member::SelectRandomPoints),
            random_ranges: of(Member::SelectRandomRanges),
            inserts: of(Member::Insert),
            deletes: of(Member::Delete),
            bulk_inserts: of(Member::BulkInsert),
            simple_ranges: reads,
            sum_ranges: reads,
            order_ranges: reads,
            distinct_ranges: reads,
            index_updates: writes + of(Member::UpdateIndex),
            non_index_updates: writes + of(Member::UpdateNonIndex),
            delete_inserts: writes,
        };
        Self {
            member,
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            counts,
            skip_trx: !member.is_transaction(),
            points: 10,
            ranges: 10,
            range_delta: 5,
            threads: 1,
            distribution: Distribution::Uniform,
            rand: RandParameters::default(),
            auto_inc: true,
            seed: 0,
            isolation: Isolation::default(),
            as_text: false,
        }
    }

    /// Transactions that change so many rows of one table and do nothing else. The column that
    /// they change has no index and keeps its size.
    pub fn updates(table_size: i64, row_updates: u32) -> Self {
        let nothing = Self::new(Member::PointSelect).counts;
        let counts = Counts { point_selects: 0, non_index_updates: row_updates, ..nothing };
        Self { table_size, counts, ..Self::new(Member::WriteOnly) }
    }

    /// What chooses its rows.
    pub(super) fn chooser(&self) -> Chooser {
        Chooser::new(self.distribution, self.rand, self.table_size)
    }

    /// Statements of a transaction, its beginning and end included where it has them.
    pub fn statements(&self) -> u32 {
        let Counts { point_selects, simple_ranges, sum_ranges, order_ranges, .. } = self.counts;
        let Counts { distinct_ranges, index_updates, non_index_updates, delete_inserts, .. } =
            self.counts;
        let Counts { random_points, random_ranges, inserts, deletes, bulk_inserts, .. } =
            self.counts;
        let single = random_points + random_ranges + inserts + deletes + bulk_inserts;
        let reads = point_selects + simple_ranges + sum_ranges + order_ranges + distinct_ranges;
        let writes = index_updates + non_index_updates + 2 * delete_inserts;
        single + reads + writes + if self.skip_trx { 0 } else { 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_have_as_many_statements_as_sysbench_s() {
        let counts = Member::ALL.map(|member| OltpSpec::new(member).statements());
        assert_eq!(counts, [20, 16, 6, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(OltpSpec::updates(1000, 10).statements(), 12);
    }
}
