//! What holds of the tables at every moment, checked over every row.
//!
//! Invariant: everything is read in one transaction, so that all conditions speak of one moment.
//! Rows are read once; of each object some numbers are kept. It changes nothing.

use std::sync::Arc;

use iostrata_database::target::{OpId, Session, SessionOptions, Target, TargetError, Value};

use crate::condition::{Checked, Condition};
use crate::stress::ops::scan_all;
use crate::stress::population::amount;
use crate::stress::prepare::dataset;
use crate::stress::schema::{SECTIONS, STATUSES, TableId, ZONES, schema};

/// The conditions, by their places.
const COUNTS: usize = 0;
const LATEST: usize = 1;
const FOREIGN_KEYS: usize = 2;
const SUMS: usize = 3;
const STATUS: usize = 4;

/// What an object says, and what its history comes to.
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

/// Checks all conditions; `progress` hears of the share that is done.
///
/// # Errors
/// What the target said; nothing was prepared. Conditions that do not hold are no error.
pub fn check(target: &dyn Target, progress: &mut dyn FnMut(f64)) -> Result<Checked, TargetError> {
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
    checked: Checked,
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
            checked: Checked { conditions, ..Checked::default() },
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
