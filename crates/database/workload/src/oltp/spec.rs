//! What a member of the family does in one transaction.

use iostrata_target::Isolation;

use crate::oltp::distribution::{Chooser, Distribution};

/// sysbench's exponent.
const ZIPF_EXPONENT: f64 = 0.8;

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
}

impl Member {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ReadWrite, Self::ReadOnly, Self::WriteOnly, Self::PointSelect, Self::UpdateIndex];

    /// Its name, without `oltp_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "read_write",
            Self::ReadOnly => "read_only",
            Self::WriteOnly => "write_only",
            Self::PointSelect => "point_select",
            Self::UpdateIndex => "update_index",
        }
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
    /// Which rows.
    pub distribution: Distribution,
    /// Exponent of the Zipfian one.
    pub zipf_exponent: f64,
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
        let counts = Counts {
            point_selects: if member == Member::PointSelect { 1 } else { 10 * reads },
            simple_ranges: reads,
            sum_ranges: reads,
            order_ranges: reads,
            distinct_ranges: reads,
            index_updates: if member == Member::UpdateIndex { 1 } else { writes },
            non_index_updates: writes,
            delete_inserts: writes,
        };
        Self {
            member,
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            counts,
            skip_trx: !member.is_transaction(),
            distribution: Distribution::Uniform,
            zipf_exponent: ZIPF_EXPONENT,
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
        Chooser::new(self.distribution, self.zipf_exponent, self.table_size)
    }

    /// Statements of a transaction, its beginning and end included where it has them.
    pub fn statements(&self) -> u32 {
        let Counts { point_selects, simple_ranges, sum_ranges, order_ranges, .. } = self.counts;
        let Counts { distinct_ranges, index_updates, non_index_updates, delete_inserts, .. } =
            self.counts;
        let reads = point_selects + simple_ranges + sum_ranges + order_ranges + distinct_ranges;
        let writes = index_updates + non_index_updates + 2 * delete_inserts;
        reads + writes + if self.skip_trx { 0 } else { 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_have_as_many_statements_as_sysbench_s() {
        let counts = Member::ALL.map(|member| OltpSpec::new(member).statements());
        assert_eq!(counts, [20, 16, 6, 1, 1]);
        assert_eq!(OltpSpec::updates(1000, 10).statements(), 12);
    }
}
