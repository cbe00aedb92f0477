//! What a member of the family does in one transaction, and which rows it accesses.

use iostrata_database::target::Isolation;
use iostrata_load::Zipf;
use iostrata_stats::Random;

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

// Which rows are accessed: sysbench's distributions with their parameters.

/// What the distributions are drawn with, under sysbench's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandParameters {
    /// Uniforms that are summed up for a bell (`rand-spec-iter`).
    pub iterations: u32,
    /// Of `special`: to so many percent of the rows (`rand-spec-pct`)...
    pub special_rows_pct: u32,
    /// ... go so many percent of all draws (`rand-spec-res`).
    pub special_draws_pct: u32,
    /// Of `pareto` (`rand-pareto-h`).
    pub pareto_h: f64,
    /// Of `zipfian` (`rand-zipfian-exp`).
    pub zipf_exponent: f64,
}

impl Default for RandParameters {
    fn default() -> Self {
        Self {
            iterations: 12,
            special_rows_pct: 1,
            special_draws_pct: 75,
            pareto_h: 0.2,
            zipf_exponent: 0.8,
        }
    }
}

/// How rows are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    #[default]
    Uniform,
    /// A bell around the middle.
    Gaussian,
    /// Three of four in a hundredth of the rows, the others by a bell: the default of sysbench
    /// 1.0.
    Special,
    /// The first rows by far the most.
    Pareto,
    /// By rank, with an exponent.
    Zipfian,
}

impl Distribution {
    /// All of them, with sysbench's names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Uniform, "uniform"),
        (Self::Gaussian, "gaussian"),
        (Self::Special, "special"),
        (Self::Pareto, "pareto"),
        (Self::Zipfian, "zipfian"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Chooses rows from 1 to `count`.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    of: Distribution,
    with: RandParameters,
    count: i64,
    zipf: Zipf,
}

impl Chooser {
    pub fn new(of: Distribution, with: RandParameters, count: i64) -> Self {
        Self { of, with, count, zipf: Zipf::new(count as u64, with.zipf_exponent) }
    }

    pub fn draw(&self, random: &mut Random) -> i64 {
        let count = self.count;
        let at = match self.of {
            Distribution::Uniform => random.below(count as u64) as i64,
            Distribution::Gaussian => self.bell(random),
            Distribution::Special => {
                let usual_pct = 100 - i64::from(self.with.special_draws_pct.min(99));
                let drawn = random.below((count * 100 / usual_pct) as u64) as i64;
                let special = (count * i64::from(self.with.special_rows_pct) / 100).max(1);
                match drawn < count {
                    true => self.bell(random),
                    false => drawn % special + count / 2 - special / 2,
                }
            }
            Distribution::Pareto => {
                let h = self.with.pareto_h;
                let power = h.ln() / (1.0 - h).ln();
                (count as f64 * random.uniform().powf(power)) as i64
            }
            Distribution::Zipfian => self.zipf.draw(random) as i64,
        };
        at.clamp(0, count - 1) + 1
    }

    fn bell(&self, random: &mut Random) -> i64 {
        let iterations = self.with.iterations.max(1);
        let sum: f64 = (0..iterations).map(|_| random.uniform()).sum();
        (sum / f64::from(iterations) * self.count as f64) as i64
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

#[cfg(test)]
mod distribution_tests {
    use super::*;

    /// Share of draws among the rows that are drawn most, a tenth and a hundredth of all.
    fn hottest(of: Distribution) -> (f64, f64) {
        shares(of, RandParameters::default())
    }

    fn shares(of: Distribution, with: RandParameters) -> (f64, f64) {
        const ROWS: usize = 10_000;
        const N: usize = 400_000;
        let (chooser, mut random) = (Chooser::new(of, with, ROWS as i64), Random::new(9));
        let mut counts = vec![0u32; ROWS];
        (0..N).for_each(|_| counts[chooser.draw(&mut random) as usize - 1] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = |rows: usize| 100.0 * f64::from(counts[..rows].iter().sum::<u32>()) / N as f64;
        (share(ROWS / 10), share(ROWS / 100))
    }

    #[test]
    fn rows_are_as_hot_as_the_distribution_says() {
        for (of, tenth, hundredth) in [
            (Distribution::Uniform, 10.0..14.0, 1.0..2.0),
            (Distribution::Gaussian, 40.0..50.0, 4.0..6.5),
            (Distribution::Special, 82.0..90.0, 74.0..78.0),
            // A fifth of the rows gets four fifths.
            (Distribution::Pareto, 70.0..75.0, 50.0..56.0),
            (Distribution::Zipfian, 56.0..58.5, 29.0..31.0),
        ] {
            let (found_tenth, found_hundredth) = hottest(of);
            let is_as_said = tenth.contains(&found_tenth) && hundredth.contains(&found_hundredth);
            assert!(is_as_said, "{}: {found_tenth} {found_hundredth}", of.name());
        }
    }

    #[test]
    fn parameters_make_rows_hotter_or_cooler() {
        let usual = RandParameters::default();
        let special = RandParameters { special_rows_pct: 10, special_draws_pct: 90, ..usual };
        let (tenth, _) = shares(Distribution::Special, special);
        assert!((90.0..96.0).contains(&tenth), "{tenth}");
        let pareto = RandParameters { pareto_h: 0.1, ..usual };
        assert!(shares(Distribution::Pareto, pareto).1 > hottest(Distribution::Pareto).1);
        let zipf = RandParameters { zipf_exponent: 1.2, ..usual };
        assert!(shares(Distribution::Zipfian, zipf).1 > hottest(Distribution::Zipfian).1);
        let flat = RandParameters { iterations: 1, ..usual };
        assert!(shares(Distribution::Gaussian, flat).0 < 14.0);
    }

    #[test]
    fn one_row_is_always_itself() {
        for (of, _) in Distribution::ALL {
            let with = RandParameters::default();
            let (chooser, mut random) = (Chooser::new(of, with, 1), Random::new(1));
            assert!((0..1_000).all(|_| chooser.draw(&mut random) == 1), "{}", of.name());
        }
    }
}
