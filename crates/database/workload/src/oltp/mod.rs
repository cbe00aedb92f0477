//! The OLTP family: sysbench's tables, statements and defaults.
//!
//! Purpose: what people type today, with the same meaning. Facts of sysbench 1.0: statements, row
//! shapes, counts per transaction and distributions; its defaults hold but for the distribution,
//! which is uniform as in 1.1.

mod spec;
mod statements;
mod terminals;

use iostrata_database::target::{Schema, TableWords, Target, TargetError};
use iostrata_plan::Access;

use crate::loaded_mark::LoadCounts;
use crate::workload::OptionForm::{Count, Number, Percent, Switch, Text, Word};
use crate::workload::Verb::{Cleanup, Prepare, Run};
use crate::workload::{
    LOADERS, LoadOptions, RunnableWorkload, SourceOptions, Verb, VerbHelp, Workload, WorkloadError,
    WorkloadKind, WorkloadOption, WorkloadSettings,
};

pub use spec::{Counts, Distribution, Member, OltpSpec, RandParameters};
pub use statements::{cleanup, prepare, read_all};
pub use terminals::OltpTerminals;

// The family as a workload: sysbench's options, and the resulting spec.

/// About how large a row is.
const ROW_BYTES: u64 = 230;
/// The name of transactions that change rows of one table and do nothing else; studies have them.
const UPDATES: &str = "updates";
const ALL: &[Verb] = &[Prepare, Run, Cleanup];

/// The names of members with what they are.
const MEMBERS: [(&str, &str); Member::ALL.len()] = {
    let mut members = [("", ""); Member::ALL.len()];
    let mut at = 0;
    while at < members.len() {
        members[at] = (Member::ALL[at].name(), Member::ALL[at].words());
        at += 1;
    }
    members
};

const fn count(name: &'static str, help: &'static str) -> WorkloadOption {
    WorkloadOption::new(name, Count, help)
}

const fn switch(name: &'static str, help: &'static str) -> WorkloadOption {
    WorkloadOption::new(name, Switch, help)
}

/// The OLTP family of sysbench.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "oltp",
    about: "Run one of sysbench's OLTP workloads on the embedded engine or on a server",
    detail: "",
    members: &MEMBERS,
    verbs: &[
        VerbHelp { verb: Prepare, about: "Create and load the tables", detail: "" },
        VerbHelp { verb: Run, about: "Run transactions and measure them", detail: "" },
        VerbHelp { verb: Cleanup, about: "Remove the tables", detail: "" },
    ],
    keeps_loads: false,
    options: &[
        count("tables", "Tables sbtest1 to sbtestN").on(ALL).default("1"),
        count("table-size", "Rows of each table").on(ALL).default("10000"),
        WorkloadOption::new(
            "rand-type",
            Word(
                "RAND_TYPE",
                &[
                    ("uniform", "All alike"),
                    ("gaussian", "A bell around the middle"),
                    ("special", "Three of four in a hundredth of the rows"),
                    ("pareto", "The first rows by far the most"),
                    ("zipfian", "By rank"),
                ],
            ),
            "Which rows are accessed",
        )
        .on(ALL)
        .default("uniform"),
        count("rand-spec-iter", "Of gaussian and special: numbers that are summed up")
            .on(ALL)
            .default("12"),
        WorkloadOption::new(
            "rand-spec-pct",
            Percent("PERCENT"),
            "Of special: percent of the rows that are special",
        )
        .on(ALL)
        .default("1"),
        WorkloadOption::new(
            "rand-spec-res",
            Percent("PERCENT"),
            "Of special: percent of the draws that go to special rows",
        )
        .on(ALL)
        .default("75"),
        WorkloadOption::new("rand-pareto-h", Number("H"), "Of pareto: its shape")
            .on(ALL)
            .default("0.2"),
        WorkloadOption::new("rand-zipfian-exp", Number("EXP"), "Of zipfian: its exponent")
            .on(ALL)
            .default("0.8"),
        switch("auto-inc", "Let the server count ids up").on(ALL).default("1"),
        switch("secondary", "An index of the ids in place of the primary key; servers only")
            .on(ALL)
            .default("0"),
        WorkloadOption::new(
            "create-table-options",
            Text("TEXT"),
            "What CREATE TABLE ends with; servers only",
        )
        .on(ALL)
        .default(""),
        LOADERS.on(&[Prepare, Cleanup]),
        count("range-size", "Rows of a range").default("100"),
        switch("range-selects", "Ranges at all").default("1"),
        count("point-selects", "Selects by id [default: 10]"),
        count("simple-ranges", "Ranges as they are [default: 1]"),
        count("sum-ranges", "Sums of ranges [default: 1]"),
        count("order-ranges", "Ordered ranges [default: 1]"),
        count("distinct-ranges", "Distinct values of ranges [default: 1]"),
        count("index-updates", "Updates of the indexed column [default: 1]"),
        count("non-index-updates", "Updates of a column without an index [default: 1]"),
        count("delete-inserts", "Rows removed and put back [default: 1]"),
        count("random-points", "Values of select_random_points").default("10"),
        count("number-of-ranges", "Ranges of select_random_ranges").default("10"),
        count("delta", "Length of a range of select_random_ranges").default("5"),
        switch("skip-trx", "Make every statement a transaction of its own"),
    ],
    named: |member, _| format!("oltp_{member}"),
    has: |name| name == UPDATES || member(name).is_some(),
    of: |name, settings| Ok(Box::new(Oltp::of(name, settings)?)),
};

/// The member of a name with its `oltp_`.
fn member(name: &str) -> Option<Member> {
    let name = name.strip_prefix("oltp_")?;
    Member::ALL.into_iter().find(|member| member.name() == name)
}

/// A member with its settings.
#[derive(Clone, Debug)]
struct Oltp {
    name: String,
    spec: OltpSpec,
    table_words: TableWords,
}

impl Oltp {
    fn of(name: &str, settings: &WorkloadSettings) -> Result<Self, WorkloadError> {
        let tables = settings.number::<u32>("tables")?.unwrap_or(1);
        // In a study the size of the one table has another name.
        let size = match settings.number::<u32>("table-size")? {
            Some(size) => size,
            None => settings.number("rows")?.unwrap_or(10_000),
        };
        for (name, number) in [("tables", tables), ("table-size", size)] {
            if number == 0 {
                return WorkloadError::setting(format!("--{name} 0: at least 1 is needed"));
            }
        }
        let base = match member(name) {
            Some(member) => OltpSpec { table_size: size.into(), ..OltpSpec::new(member) },
            None => OltpSpec::updates(size.into(), settings.number("row-updates")?.unwrap_or(1)),
        };
        let least_one = |name: &str, usual: u32| -> Result<u32, WorkloadError> {
            Ok(settings.number::<u32>(name)?.map_or(usual, |number| number.max(1)))
        };
        let (distribution, rand) = distribution(settings)?;
        let sessions = settings.number::<u32>("threads")?.unwrap_or(base.threads);
        let spec = OltpSpec {
            // Bulk inserts have a table for each session, as many as sessions.
            tables: if base.member == Member::BulkInsert { sessions.max(1) } else { tables },
            threads: sessions,
            distribution,
            rand,
            auto_inc: settings.switch("auto-inc")?.unwrap_or(base.auto_inc),
            range_size: least_one("range-size", 100)?.into(),
            counts: counts(base.counts, settings)?,
            points: least_one("random-points", base.points)?,
            ranges: least_one("number-of-ranges", base.ranges)?,
            range_delta: settings.number("delta")?.unwrap_or(base.range_delta),
            skip_trx: settings.switch("skip-trx")?.unwrap_or(base.skip_trx),
            ..base
        };
        let table_words = TableWords {
            options: settings.text("create-table-options").unwrap_or_default().to_owned(),
            key_is_secondary: settings.is_on("secondary")?,
        };
        Ok(Self { name: name.to_owned(), spec, table_words })
    }
}

/// How often each statement comes, where that was set.
fn counts(of: Counts, settings: &WorkloadSettings) -> Result<Counts, WorkloadError> {
    let has_ranges = settings.switch("range-selects")?.unwrap_or(true);
    let asked = |name: &str, usual: u32| -> Result<u32, WorkloadError> {
        Ok(settings.number(name)?.unwrap_or(usual))
    };
    let range = |name: &str, usual: u32| match has_ranges {
        true => asked(name, usual),
        false => Ok(0),
    };
    Ok(Counts {
        point_selects: asked("point-selects", of.point_selects)?,
        simple_ranges: range("simple-ranges", of.simple_ranges)?,
        sum_ranges: range("sum-ranges", of.sum_ranges)?,
        order_ranges: range("order-ranges", of.order_ranges)?,
        distinct_ranges: range("distinct-ranges", of.distinct_ranges)?,
        index_updates: asked("index-updates", of.index_updates)?,
        non_index_updates: asked("non-index-updates", of.non_index_updates)?,
        delete_inserts: asked("delete-inserts", of.delete_inserts)?,
        ..of
    })
}

/// Which rows, with what they are drawn by.
fn distribution(
    settings: &WorkloadSettings,
) -> Result<(Distribution, RandParameters), WorkloadError> {
    let refuse = |option: &str, found: &dyn std::fmt::Display, fix: &str| {
        WorkloadError::setting(format!("--{option} {found}: use {fix}"))
    };
    let usual = RandParameters::default();
    let rand = RandParameters {
        iterations: settings.number("rand-spec-iter")?.unwrap_or(usual.iterations),
        special_rows_pct: settings.number("rand-spec-pct")?.unwrap_or(usual.special_rows_pct),
        special_draws_pct: settings.number("rand-spec-res")?.unwrap_or(usual.special_draws_pct),
        pareto_h: settings.number("rand-pareto-h")?.unwrap_or(usual.pareto_h),
        zipf_exponent: settings.number("rand-zipfian-exp")?.unwrap_or(usual.zipf_exponent),
    };
    if rand.iterations == 0 {
        return refuse("rand-spec-iter", &rand.iterations, "1 or more");
    }
    if rand.special_draws_pct >= 100 {
        return refuse("rand-spec-res", &rand.special_draws_pct, "0 to 99");
    }
    if !(rand.pareto_h > 0.0 && rand.pareto_h < 1.0) {
        return refuse("rand-pareto-h", &rand.pareto_h, "a number between 0 and 1");
    }
    if !(0.0..=10.0).contains(&rand.zipf_exponent) {
        return refuse("rand-zipfian-exp", &rand.zipf_exponent, "0 to 10");
    }
    // In a study it is a word of requests, too.
    if let Some(Ok(Access::Zipfian(theta))) = settings.text("random-distribution").map(str::parse) {
        return Ok((Distribution::Zipfian, RandParameters { zipf_exponent: theta.0, ..rand }));
    }
    let name = settings.text("rand-type").unwrap_or(Distribution::default().name());
    match Distribution::ALL.into_iter().find(|(_, one)| *one == name) {
        Some((distribution, _)) => Ok((distribution, rand)),
        None => refuse("rand-type", &name, "uniform, gaussian, special, pareto or zipfian"),
    }
}

impl Workload for Oltp {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn schema(&self) -> Schema {
        self.spec.schema()
    }

    fn table_words(&self) -> TableWords {
        self.table_words.clone()
    }

    fn size(&self) -> (u64, &'static str) {
        (self.spec.tables.into(), "tables")
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(u64::from(self.spec.tables) * self.spec.table_size as u64 * ROW_BYTES)
    }

    fn tables_name(&self) -> String {
        let family = if self.name == UPDATES { UPDATES } else { "oltp" };
        format!("{family}-{}", self.spec.table_size)
    }

    fn contents(&self) -> String {
        let OltpSpec { tables, table_size, .. } = self.spec;
        format!("oltp, {tables} tables of {table_size} rows")
    }

    fn loading(&self) -> String {
        format!("filling {} tables", self.spec.tables)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<LoadCounts, TargetError> {
        if options.resets {
            cleanup(target, &self.spec)?;
        }
        let spec = OltpSpec { seed: options.seed, ..self.spec.clone() };
        let in_all = f64::from(spec.tables) * spec.table_size as f64;
        prepare(target, &spec, options.threads, options.stop, &|rows| {
            progress(rows as f64 / in_all.max(1.0));
        })
    }

    fn read_all(&self, target: &dyn Target) -> Result<(), TargetError> {
        read_all(target, &self.spec)
    }

    fn only_reads(&self) -> bool {
        self.spec.member.only_reads()
    }

    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError> {
        let spec = OltpSpec {
            seed: options.seed,
            isolation: options.isolation,
            as_text: options.as_text,
            ..self.spec.clone()
        };
        Ok(RunnableWorkload {
            settings: vec![
                ("tables", spec.tables.to_string()),
                ("table_size", spec.table_size.to_string()),
                ("range_size", spec.range_size.to_string()),
                ("rand_type", spec.distribution.name().to_owned()),
                ("skip_trx", spec.skip_trx.to_string()),
            ],
            ..RunnableWorkload::new(OltpTerminals::new(target, spec, options.blocks)?)
        })
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target, &self.spec).map(|tables| tables > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, settings: &[(&str, &str)]) -> OltpSpec {
        Oltp::of(name, &WorkloadSettings::to_load(settings.iter().copied())).unwrap().spec
    }

    #[test]
    fn words_of_studies_are_settings_too() {
        let words = [("rows", "500"), ("row_updates", "7"), ("random_distribution", "zipf:0.9")];
        let found = spec(UPDATES, &words);
        assert_eq!((found.table_size, found.counts.non_index_updates), (500, 7));
        assert_eq!((found.distribution, found.rand.zipf_exponent), (Distribution::Zipfian, 0.9));
        assert_eq!(found.statements(), 9);
    }

    #[test]
    fn a_member_is_what_sysbench_makes_of_its_options() {
        let plain = spec("oltp_read_write", &[]);
        assert_eq!(plain, OltpSpec { ..OltpSpec::new(Member::ReadWrite) });
        let asked = [("range-selects", "0"), ("point-selects", "3"), ("index-updates", "2")];
        assert_eq!(spec("oltp_read_write", &asked).statements(), 3 + 2 + 1 + 2 + 2);
        let bulk = spec("oltp_bulk_insert", &[("threads", "5"), ("tables", "2")]);
        assert_eq!((bulk.tables, bulk.threads), (5, 5), "a table for each session");
    }
}
