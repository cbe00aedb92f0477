//! The tables: declared, with the operations on them; their first rows, filled and removed; and
//! what holds of them at every moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Isolation, Op, OpId, Order, Rows, Schema,
    Session, SessionOptions, Table, Target, TargetError, Value,
};
use iostrata_stats::{Random, split_mix};

use crate::loaded_mark::{LoadCounts, LoadedMark, fill_all, mark_table, refuse_stopped};
use crate::stress::StressMix;
use crate::tpcc::draw::letters;
use crate::tpcc::now_s;
use crate::workload::{CheckResult, Condition};

/// Rows of the small tables.
const ZONES: i64 = 10;
const SECTIONS: i64 = 100;
const STATUSES: i64 = 1_000;

/// The table of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableId {
    Zones,
    Sections,
    Statuses,
    Objects,
    History,
}

impl TableId {
    pub const ALL: [Self; 5] =
        [Self::Zones, Self::Sections, Self::Statuses, Self::Objects, Self::History];

    pub fn number(self) -> usize {
        self as usize
    }
}

/// The five tables, and one that records what was loaded.
pub fn schema() -> Schema {
    let int = ColumnType::Int { bytes: 4 };
    let (name, note) = (ColumnType::Char(20), ColumnType::Varchar(100));
    let table = |name: &str, key: &[usize], columns: &[(&str, ColumnType)]| Table {
        name: name.to_owned(),
        columns: columns
            .iter()
            .map(|(name, of)| Column { name: (*name).to_owned(), of: *of, is_nullable: false })
            .collect(),
        key: key.to_vec(),
        indexes: Vec::new(),
        auto_increment: false,
    };
    let objects = [
        ("o_id", int),
        ("o_section", int),
        ("o_status", int),
        // The number of its latest history row.
        ("o_last", int),
        // The sum over its history rows.
        ("o_total", ColumnType::Int { bytes: 8 }),
        ("o_name", name),
        ("o_note", note),
    ];
    let history = [
        ("h_object", int),
        ("h_number", int),
        ("h_status", int),
        ("h_amount", int),
        ("h_at", ColumnType::DateTime),
        ("h_note", note),
    ];
    Schema {
        tables: vec![
            table("stress_zones", &[0], &[("z_id", int), ("z_name", name)]),
            table("stress_sections", &[0], &[("s_id", int), ("s_zone", int), ("s_name", name)]),
            table("stress_statuses", &[0], &[("t_id", int), ("t_name", name)]),
            table("stress_objects", &[0], &objects),
            table("stress_history", &[0, 1], &history),
            mark_table("iostrata_stress", &["objects", "history"]),
        ],
    }
}

// The operations, declared.

/// The operations, by their places.
pub(super) const OBJECT: OpId = OpId(0);
pub(super) const SECTION: OpId = OpId(1);
pub(super) const ZONE: OpId = OpId(2);
pub(super) const HISTORY: OpId = OpId(3);
pub(super) const READ_STATUSES: OpId = OpId(4);
pub(super) const LOCK_OBJECT: OpId = OpId(5);
pub(super) const CHANGE_OBJECT: OpId = OpId(6);
pub(super) const DELETE_OLDEST: OpId = OpId(7);
pub(super) const INSERT_LATEST: OpId = OpId(8);

/// Those of the transactions. The latest `history` rows of an object are read.
pub(super) fn ops(schema: &Schema, history: i64) -> Arc<[Op]> {
    let columns = |table: TableId, names: &[&str]| schema.tables[table.number()].columns_of(names);
    let get = |table: TableId, names: &[&str], locks| Access::Get {
        columns: columns(table, names),
        locks,
    };
    let set = |name: &str, change| Assign { column: columns(TableId::Objects, &[name])[0], change };
    let latest = Access::Scan {
        index: None,
        prefix: 1,
        is_range: false,
        order: Order::Descending,
        limit: Some(u32::try_from(history).unwrap_or(u32::MAX)),
        locks: false,
        columns: columns(TableId::History, &["h_number", "h_status", "h_amount", "h_at", "h_note"]),
        fold: Fold::Rows,
    };
    let change = Access::Modify {
        prefix: 1,
        set: vec![
            set("o_status", Change::Set),
            set("o_note", Change::Set),
            set("o_last", Change::AddConst(1)),
            set("o_total", Change::Add),
        ],
        returns: Vec::new(),
    };
    use TableId::{History, Objects, Sections, Statuses, Zones};
    let of_object = ["o_section", "o_status", "o_last", "o_name", "o_note"];
    let op = |name, table: TableId, access| Op { name, table: table.number(), access };
    [
        op("object", Objects, get(Objects, &of_object, false)),
        op("section", Sections, get(Sections, &["s_zone", "s_name"], false)),
        op("zone", Zones, get(Zones, &["z_name"], false)),
        op("history", History, latest),
        op("statuses", Statuses, get(Statuses, &["t_id", "t_name"], false)),
        op("lock object", Objects, get(Objects, &["o_last"], true)),
        op("change object", Objects, change),
        op("delete the oldest", History, Access::Delete),
        op("insert the latest", History, Access::Insert),
    ]
    .into()
}

/// Every row of a table, in the order of its key.
fn scan_all(schema: &Schema, table: TableId, names: &[&str]) -> Op {
    let access = Access::Scan {
        index: None,
        prefix: 0,
        is_range: false,
        order: Order::Ascending,
        limit: None,
        locks: false,
        columns: schema.tables[table.number()].columns_of(names),
        fold: Fold::Rows,
    };
    Op { name: "every row", table: table.number(), access }
}

// The first rows.
//
// Invariant: an object and its history come from one stream of the seed, whichever of their tables
// is filled, so that both agree.

/// Rows that are made at once, about.
const BATCH: usize = 256;
/// Least and most characters of a note.
pub(super) const NOTE: (i64, i64) = (60, 100);
const NAME: i64 = 20;
/// Amounts are below it.
const AMOUNT: u64 = 1_000;

/// The amount of a history row. It follows from the row's key, so that a transaction can compute
/// the amount of the row that it removes.
pub(super) fn amount(object: i64, number: i64) -> i64 {
    let mut state = (object as u64) << 32 ^ number as u64;
    1 + (split_mix(&mut state) % AMOUNT) as i64
}

/// One table's rows, in the order of their keys.
pub(super) struct RowSource {
    table: TableId,
    next: i64,
    last: i64,
    history: i64,
    seed: u64,
    now_s: i64,
    text: Vec<u8>,
}

impl RowSource {
    pub fn new(table: TableId, (objects, history): (i64, i64), seed: u64, now_s: i64) -> Self {
        let last = match table {
            TableId::Zones => ZONES,
            TableId::Sections => SECTIONS,
            TableId::Statuses => STATUSES,
            TableId::Objects | TableId::History => objects,
        };
        Self { table, next: 1, last, history, seed, now_s, text: Vec::new() }
    }

    /// Some rows; none are left when it leaves the buffer empty.
    pub fn fill(&mut self, rows: &mut Rows) {
        rows.clear(match self.table {
            TableId::Zones | TableId::Statuses => 2,
            TableId::Sections => 3,
            TableId::Objects => 7,
            TableId::History => 6,
        });
        while self.next <= self.last && rows.len() < BATCH {
            let id = self.next;
            match self.table {
                TableId::Objects => self.object(id, rows),
                TableId::History => self.history(id, rows),
                small => self.small(small, id, rows),
            }
            self.next += 1;
        }
    }

    /// The stream of an object, and the statuses of its history, from the oldest.
    fn statuses(&self, object: i64) -> (Random, Vec<i64>) {
        let mut random = Random::of_stream(self.seed, 1 << 63 | object as u64);
        let statuses = (0..self.history).map(|_| status(&mut random)).collect();
        (random, statuses)
    }

    fn object(&mut self, id: i64, rows: &mut Rows) {
        let (mut random, statuses) = self.statuses(id);
        let section = 1 + random.below(SECTIONS as u64) as i64;
        let total: i64 = (1..=self.history).map(|number| amount(id, number)).sum();
        let status = statuses.last().copied().unwrap_or(1);
        for number in [id, section, status, self.history, total] {
            rows.push(number.into());
        }
        self.push_letters(&mut random, (NAME, NAME), rows);
        self.push_letters(&mut random, NOTE, rows);
    }

    fn history(&mut self, id: i64, rows: &mut Rows) {
        let (_, statuses) = self.statuses(id);
        let mut random = Random::of_stream(self.seed, 3 << 62 | id as u64);
        for (number, status) in (1..).zip(statuses) {
            for value in [id, number, status, amount(id, number), self.now_s] {
                rows.push(value.into());
            }
            self.push_letters(&mut random, NOTE, rows);
        }
    }

    fn small(&mut self, table: TableId, id: i64, rows: &mut Rows) {
        let mut random = Random::of_stream(self.seed, (table.number() as u64) << 32 | id as u64);
        rows.push(id.into());
        if table == TableId::Sections {
            rows.push((1 + (id - 1) % ZONES).into());
        }
        self.push_letters(&mut random, (NAME, NAME), rows);
    }

    fn push_letters(&mut self, random: &mut Random, (least, most): (i64, i64), rows: &mut Rows) {
        self.text.clear();
        letters(random, &mut self.text, least, most);
        rows.push(Value::Text(&self.text));
    }
}

/// A status that is drawn.
pub(super) fn status(random: &mut Random) -> i64 {
    1 + random.below(STATUSES as u64) as i64
}

// Filling and removing the tables.

/// The workload.
#[derive(Clone, Debug, PartialEq)]
pub struct StressSpec {
    /// Objects.
    pub objects: i64,
    /// History rows of each, always.
    pub history: i64,
    /// Which transactions.
    pub mix: StressMix,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Of transactions.
    pub isolation: Isolation,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
}

impl Default for StressSpec {
    fn default() -> Self {
        Self {
            objects: 100_000,
            history: 20,
            mix: StressMix::default(),
            seed: 1,
            isolation: Isolation::default(),
            as_text: false,
        }
    }
}

const COMMAND: &str = "stress";

/// The number of objects, and of history rows of each.
///
/// # Errors
/// The target's error; nothing was prepared, or not to the end.
pub fn dataset(target: &dyn Target) -> Result<(i64, i64), TargetError> {
    let schema = Arc::new(schema());
    let numbers = LoadedMark { schema: &schema, command: COMMAND }.ready(target)?;
    let number = |at: usize| numbers.get(at).copied().unwrap_or_default();
    Ok((number(0), number(1)))
}

/// Makes and fills the tables; with `resets` in place of what is there of them. `progress` gets the
/// rows so far and of all.
///
/// # Errors
/// Other tables or other numbers of rows are there; the target's error; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &StressSpec,
    (threads, resets): (usize, bool),
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<LoadCounts, TargetError> {
    let schema = Arc::new(schema());
    let mark = LoadedMark { schema: &schema, command: COMMAND };
    let (numbers, in_all) = ([spec.objects, spec.history], rows_in_all(spec));
    if !mark.begin(target, &numbers, resets)? {
        return Ok(LoadCounts { rows: 0, rows_before: in_all });
    }
    let (rows, now_s) = (AtomicU64::new(0), now_s());
    // The largest first.
    let mut tables = TableId::ALL;
    tables.reverse();
    fill_all(&tables, threads, stop, |table, is_over| {
        let mut source = RowSource::new(*table, (spec.objects, spec.history), spec.seed, now_s);
        let mut more = |buffer: &mut Rows| {
            if is_over() {
                return buffer.clear(1);
            }
            source.fill(buffer);
            let count = buffer.len() as u64;
            progress(rows.fetch_add(count, Ordering::Relaxed) + count, in_all);
        };
        target.load(&schema, table.number(), None, &mut more).map(drop)
    })?;
    refuse_stopped(target, stop, "the same command begins again")?;
    target.finish(&schema)?;
    mark.set(target, &numbers)?;
    Ok(LoadCounts { rows: rows.into_inner(), rows_before: 0 })
}

fn rows_in_all(spec: &StressSpec) -> u64 {
    (ZONES + SECTIONS + STATUSES + spec.objects * (1 + spec.history)) as u64
}

/// Reads every row once, so that the target has in memory what has room there.
///
/// # Errors
/// The target's error.
pub fn read_all(target: &dyn Target) -> Result<(), TargetError> {
    let schema = Arc::new(schema());
    let ops = [
        scan_all(&schema, TableId::Objects, &["o_id", "o_note"]),
        scan_all(&schema, TableId::History, &["h_object", "h_note"]),
    ];
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    session.stream(OpId(0), &[], &mut |_| {})?;
    session.stream(OpId(1), &[], &mut |_| {})?;
    session.rollback()
}

/// Removes the tables, if this program made them; whether there were any.
///
/// # Errors
/// The target's error; tables that iostrata did not make.
pub fn cleanup(target: &dyn Target) -> Result<bool, TargetError> {
    LoadedMark { schema: &Arc::new(schema()), command: COMMAND }.remove(target)
}

// What holds of the tables at every moment, checked over every row.
//
// Invariant: everything is read in one transaction, so that all conditions speak of one moment.
// Rows are read once; of each object some numbers are kept. It changes nothing.

/// The conditions, by their places.
const COUNTS: usize = 0;
const LATEST: usize = 1;
const FOREIGN_KEYS: usize = 2;
const SUMS: usize = 3;
const STATUS: usize = 4;

/// An object's own values, and what its history adds up to.
#[derive(Clone, Copy, Debug, Default)]
struct Object {
    status: i64,
    last: i64,
    total: i64,
    is_there: bool,
    rows: i64,
    least: i64,
    greatest: i64,
    sum: i64,
    latest_status: i64,
}

/// Checks all conditions; `progress` gets the share that is done.
///
/// # Errors
/// The target's error; nothing was prepared. Conditions that do not hold are no error.
pub fn check(
    target: &dyn Target,
    progress: &mut dyn FnMut(f64),
) -> Result<CheckResult, TargetError> {
    let (objects, history) = dataset(target)?;
    let schema = Arc::new(schema());
    let ops = [
        scan_all(&schema, TableId::Zones, &["z_id"]),
        scan_all(&schema, TableId::Sections, &["s_id", "s_zone"]),
        scan_all(&schema, TableId::Statuses, &["t_id"]),
        scan_all(
            &schema,
            TableId::Objects,
            &["o_id", "o_section", "o_status", "o_last", "o_total"],
        ),
        scan_all(&schema, TableId::History, &["h_object", "h_number", "h_status", "h_amount"]),
    ];
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    let mut check = Check::new(objects, history);
    check.small(&mut *session)?;
    check.objects(&mut *session)?;
    progress(1.0 / (1 + history) as f64);
    check.history(&mut *session, progress)?;
    session.rollback()?;
    check.compare();
    Ok(check.checked)
}

struct Check {
    history: i64,
    checked: CheckResult,
    /// From the first to the last.
    objects: Vec<Object>,
}

fn numbers<const N: usize>(row: &[Value<'_>]) -> [i64; N] {
    std::array::from_fn(|at| row[at].int())
}

impl Check {
    fn new(objects: i64, history: i64) -> Self {
        let says = [
            format!("{objects} objects with {history} history rows each"),
            "the history of an object has no gap and ends at its latest row".to_owned(),
            "sections, zones, statuses and objects that rows name are there".to_owned(),
            "the total of an object is the sum over its history".to_owned(),
            "the status of an object is that of its latest history row".to_owned(),
        ];
        let conditions = says.into_iter().map(Condition::new).collect();
        Self {
            history,
            checked: CheckResult { conditions, ..CheckResult::default() },
            objects: vec![Object::default(); objects.max(0) as usize],
        }
    }

    fn condition(&mut self, which: usize) -> &mut Condition {
        &mut self.checked.conditions[which]
    }

    /// Zones, sections and statuses.
    fn small(&mut self, session: &mut dyn Session) -> Result<(), TargetError> {
        let all = [("zones", ZONES), ("sections", SECTIONS), ("statuses", STATUSES)];
        for (op, (name, loaded)) in all.into_iter().enumerate() {
            let mut found = 0;
            session.stream(OpId(op), &[], &mut |row| {
                found += 1;
                let is_there = op != 1 || (1..=ZONES).contains(&row[1].int());
                self.checked.conditions[FOREIGN_KEYS].wants(is_there, || {
                    format!("section {}: there is no zone {}", row[0].int(), row[1].int())
                });
            })?;
            self.checked.rows += found as u64;
            let is_all = found == loaded;
            self.condition(COUNTS).wants(is_all, || format!("{found} of {loaded} {name}"));
        }
        Ok(())
    }

    fn objects(&mut self, session: &mut dyn Session) -> Result<(), TargetError> {
        session.stream(OpId(3), &[], &mut |row| {
            self.checked.rows += 1;
            let [id, section, status, last, total] = numbers(row);
            let leads = (1..=SECTIONS).contains(&section) && (1..=STATUSES).contains(&status);
            self.condition(FOREIGN_KEYS).wants(leads, || {
                format!("object {id}: there is no section {section} or no status {status}")
            });
            match self.place(id) {
                Some(at) => {
                    let is_there = true;
                    self.objects[at] =
                        Object { status, last, total, is_there, ..Object::default() };
                }
                None => self.condition(COUNTS).violated(|| format!("object {id} was never loaded")),
            }
        })
    }

    fn history(
        &mut self,
        session: &mut dyn Session,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), TargetError> {
        let in_all = (self.objects.len() as i64 * (1 + self.history)).max(1) as f64;
        session.stream(OpId(4), &[], &mut |row| {
            self.checked.rows += 1;
            if self.checked.rows.is_multiple_of(100_000) {
                progress((self.checked.rows as f64 / in_all).min(1.0));
            }
            let [id, number, status, found] = numbers(row);
            let leads = (1..=STATUSES).contains(&status);
            self.condition(FOREIGN_KEYS)
                .wants(leads, || format!("history row {id}/{number}: there is no status {status}"));
            let is_right = found == amount(id, number);
            self.condition(SUMS)
                .wants(is_right, || format!("history row {id}/{number}: the amount is {found}"));
            let Some(at) = self.place(id).filter(|at| self.objects[*at].is_there) else {
                let tell = || format!("history row {id}/{number}: there is no object {id}");
                return self.condition(FOREIGN_KEYS).violated(tell);
            };
            let object = &mut self.objects[at];
            if object.rows == 0 {
                object.least = number;
            }
            // Rows come in the order of their numbers.
            (object.greatest, object.latest_status) = (number, status);
            (object.rows, object.sum) = (object.rows + 1, object.sum + found);
        })
    }

    fn place(&self, id: i64) -> Option<usize> {
        let at = usize::try_from(id.checked_sub(1)?).ok()?;
        (at < self.objects.len()).then_some(at)
    }

    /// Objects against their history.
    fn compare(&mut self) {
        let Self { history, checked, objects } = self;
        let history = *history;
        for (id, object) in (1_i64..).zip(objects) {
            let all = &mut checked.conditions;
            if !object.is_there {
                all[COUNTS].violated(|| format!("object {id} is missing"));
                continue;
            }
            let Object { rows, least, greatest, last, .. } = *object;
            all[COUNTS].wants(rows == history, || format!("object {id}: {rows} history rows"));
            let is_latest = (least, greatest) == (last - history + 1, last);
            all[LATEST].wants(is_latest, || {
                format!("object {id}: rows {least} to {greatest}, the latest is {last}")
            });
            all[SUMS].wants(object.total == object.sum, || {
                format!("object {id}: total {}, sum {}", object.total, object.sum)
            });
            all[STATUS].wants(object.status == object.latest_status, || {
                format!("object {id}: status {}, latest {}", object.status, object.latest_status)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(table: TableId) -> Vec<Vec<i64>> {
        let mut source = RowSource::new(table, (300, 3), 5, 1_700_000_000);
        let (mut rows, mut found) = (Rows::default(), Vec::new());
        loop {
            source.fill(&mut rows);
            if rows.is_empty() {
                return found;
            }
            let numbers = |row| -> Vec<i64> {
                let number =
                    |value| if let Value::Int(number) = value { Some(number) } else { None };
                rows.row(row).filter_map(number).collect()
            };
            found.extend((0..rows.len()).map(numbers));
        }
    }

    #[test]
    fn objects_agree_with_their_history() {
        let (objects, history) = (all(TableId::Objects), all(TableId::History));
        assert_eq!((objects.len(), history.len()), (300, 900));
        for (object, history) in objects.iter().zip(history.chunks(3)) {
            let [id, section, status, last, total] = object[..] else { panic!("{object:?}") };
            assert!((1..=SECTIONS).contains(&section) && last == 3);
            assert!(history.iter().all(|row| row[0] == id && (1..=STATUSES).contains(&row[2])));
            assert_eq!(history.iter().map(|row| row[1]).collect::<Vec<_>>(), [1, 2, 3]);
            assert_eq!(history[2][2], status);
            assert_eq!(history.iter().map(|row| row[3]).sum::<i64>(), total);
        }
        let amounts: Vec<i64> = history.iter().map(|row| row[3]).collect();
        assert!(amounts.iter().all(|amount| (1..=1_000).contains(amount)));
        assert!(amounts.windows(2).filter(|pair| pair[0] == pair[1]).count() < 10);
    }

    #[test]
    fn the_small_tables_lead_to_each_other() {
        let sections = all(TableId::Sections);
        assert_eq!(sections.len() as i64, SECTIONS);
        assert!((1..=ZONES).all(|zone| sections.iter().filter(|row| row[1] == zone).count() == 10));
        assert_eq!(all(TableId::Statuses).len() as i64, STATUSES);
        assert_eq!(all(TableId::Zones).len() as i64, ZONES);
    }
}
