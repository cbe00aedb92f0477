//! Random operations of every kind on random schemas, several sessions interleaved, against the
//! model.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Fold, Isolation, Op, OpId, Rows, Schema, Session, SessionOptions, Target, Ticket,
    Trouble, Value,
};
use iostrata_embedded::EmbeddedTarget;

use crate::chance::Chance;
use crate::model::Model;
use crate::schemas::{args, ops, row, schema};
use crate::values::{OwnedValue, Row};

const SESSIONS: usize = 3;
const STEPS: usize = 250;

/// Small, and no session waits for a lock: it is refused at once.
pub fn settings() -> Vec<(String, String)> {
    let all = [
        ("buffer_pool_size", "8M"),
        ("redo_log_capacity", "4M"),
        ("autoextend_increment", "1M"),
        ("lock_wait_timeout", "0"),
    ];
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Rows as they can be compared.
pub fn kept(rows: &Rows) -> Vec<Row> {
    (0..rows.len()).map(|at| rows.row(at).map(OwnedValue::of).collect()).collect()
}

/// The engine and the model of it.
struct Pair {
    target: EmbeddedTarget,
    schema: Arc<Schema>,
    ops: Arc<[Op]>,
    model: Model,
    isolation: Isolation,
}

type Sessions = Vec<Box<dyn Session>>;

impl Pair {
    /// Tables with some rows in them.
    fn new(dir: &std::path::Path, chance: &mut Chance) -> Self {
        let schema = schema(chance);
        let ops = ops(&schema, chance).into();
        let isolation = match chance.one_in(2) {
            true => Isolation::RepeatableRead,
            false => Isolation::ReadCommitted,
        };
        let target = EmbeddedTarget::open(dir, &schema, &settings()).unwrap();
        let mut model = Model::new(&schema, isolation, SESSIONS);
        for table in 0..schema.tables.len() {
            target.create(&schema, table).unwrap();
            let mut rows = sorted_rows(&schema, table, chance);
            rows.iter().for_each(|row| model.load(table, row.clone()));
            let columns = schema.tables[table].columns.len();
            let loaded = target.load(&schema, table, None, &mut |buffer| {
                buffer.clear(columns);
                for row in rows.drain(..rows.len().min(3)) {
                    buffer.push_row(&row.iter().map(OwnedValue::value).collect::<Vec<_>>());
                }
            });
            assert_eq!(loaded.unwrap(), model.rows(table).len() as u64);
        }
        model.restart();
        target.finish(&schema).unwrap();
        Self { target, schema: Arc::new(schema), ops, model, isolation }
    }

    fn sessions(&self) -> Sessions {
        let options = SessionOptions {
            ops: Arc::clone(&self.ops),
            isolation: self.isolation,
            ..SessionOptions::default()
        };
        (0..SESSIONS).map(|_| self.target.session(&self.schema, &options).unwrap()).collect()
    }

    /// One operation on both sides.
    fn step(&mut self, sessions: &mut Sessions, at: usize, chance: &mut Chance) {
        let session = &mut sessions[at];
        if !self.model.is_open(at) {
            session.begin().unwrap();
            self.model.begin(at);
        }
        let number = chance.index(self.ops.len());
        let op = &self.ops[number];
        let args = args(&self.schema, op, chance);
        let values: Vec<Value<'_>> = args.iter().map(OwnedValue::value).collect();
        let mut out = Rows::default();
        let said = session.run(OpId(number), &values, &mut out);
        let expected = self.model.run(at, op, &args);
        let what = || format!("{op:#?}\n{args:?}\nof {:#?}", self.schema.tables[0]);
        match (said, expected) {
            (Ok(count), Ok((mut rows, expected))) => {
                let mut found = kept(&out);
                if matches!(op.access, Access::Get { .. }) {
                    rows.sort();
                    found.sort();
                }
                assert_eq!((found, count), (rows, expected), "{}", what());
                let is_scan =
                    matches!(&op.access, Access::Scan { fold, .. } if *fold == Fold::Rows);
                if is_scan {
                    let mut streamed = Vec::new();
                    let mut each = |row: &[Value<'_>]| {
                        streamed
                            .push(row.iter().map(|value| OwnedValue::of(*value)).collect::<Row>());
                    };
                    session.stream(OpId(number), &values, &mut each).unwrap();
                    assert_eq!(streamed, kept(&out), "{}", what());
                }
            }
            (Err(error), Err(trouble)) => {
                assert_eq!(error.trouble, trouble, "{error}: {}", what());
                let code = if trouble == Trouble::Retry { "lock_timeout" } else { "exists" };
                assert_eq!(error.code, code, "{error}");
                assert!(out.is_empty());
            }
            (said, expected) => panic!("{said:?} for {expected:?}: {}", what()),
        }
    }

    /// Whether everything that is committed is there, and the engine is whole.
    fn compare(&self) {
        let all = (0..self.schema.tables.len()).map(|table| {
            let columns: Vec<usize> = (0..self.schema.tables[table].columns.len()).collect();
            let access = Access::Scan {
                index: None,
                prefix: 0,
                is_range: false,
                order: Default::default(),
                limit: None,
                locks: false,
                columns,
                fold: Fold::Rows,
            };
            Op { name: "all", table, access }
        });
        let ops: Vec<Op> = all.collect();
        let options = SessionOptions { ops: ops.into(), autocommit: true, ..Default::default() };
        let mut session = self.target.session(&self.schema, &options).unwrap();
        for table in 0..self.schema.tables.len() {
            let mut out = Rows::default();
            session.run(OpId(table), &[], &mut out).unwrap();
            assert_eq!(kept(&out), self.model.rows(table), "{:#?}", self.schema.tables[table]);
        }
        let report = self.target.engine().check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
}

/// Rows with different keys, in their order, of which all have a key.
fn sorted_rows(schema: &Schema, table: usize, chance: &mut Chance) -> Vec<Row> {
    let declared = &schema.tables[table];
    let counts = 20 + chance.index(20);
    let mut rows: Vec<Row> = (0..counts).map(|_| row(declared, chance)).collect();
    rows.retain(|row| declared.key.iter().all(|column| row[*column] != OwnedValue::Null));
    if declared.key.is_empty() {
        return rows;
    }
    let key = |row: &Row| -> Row {
        let of = |column: &usize| match &row[*column] {
            OwnedValue::Text(text) if declared.columns[*column].of.is_text() => {
                let is_char = format!("{:?}", declared.columns[*column].of).starts_with("Char");
                let mut text = text.clone();
                while is_char && text.last() == Some(&b' ') {
                    text.pop();
                }
                OwnedValue::Text(text)
            }
            other => other.clone(),
        };
        declared.key.iter().map(of).collect()
    };
    rows.sort_by_key(key);
    rows.dedup_by_key(|row| key(row));
    rows
}

fn settle(session: &mut Box<dyn Session>, tickets: &mut Vec<Ticket>, chance: &mut Chance) {
    while !tickets.is_empty() {
        let ticket = tickets.swap_remove(chance.index(tickets.len()));
        if !session.settle(ticket, false).unwrap() {
            assert!(session.settle(ticket, true).unwrap());
        }
        assert!(session.settle(ticket, false).unwrap(), "settled once, settled for good");
    }
}

fn run(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let chance = &mut Chance::new(seed);
    let mut pair = Pair::new(dir.path(), chance);
    pair.compare();
    for is_last in [false, true] {
        let mut sessions = pair.sessions();
        let mut tickets = vec![Vec::new(); SESSIONS];
        for _step in 0..STEPS {
            let at = chance.index(SESSIONS);
            if !chance.one_in(6) || !pair.model.is_open(at) {
                pair.step(&mut sessions, at, chance);
                continue;
            }
            let commits = !chance.one_in(4);
            match commits {
                true => tickets[at].push(sessions[at].commit().unwrap()),
                false => sessions[at].rollback().unwrap(),
            }
            pair.model.end(at, commits);
            if chance.one_in(4) {
                settle(&mut sessions[at], &mut tickets[at], chance);
            }
        }
        drop(sessions);
        (0..SESSIONS).for_each(|at| pair.model.end(at, false));
        pair.compare();
        if is_last {
            pair.target.close().unwrap();
            return;
        }
        let Pair { target, schema, ops, mut model, isolation } = pair;
        target.close().unwrap();
        let target = EmbeddedTarget::open(dir.path(), &schema, &settings()).unwrap();
        model.restart();
        pair = Pair { target, schema, ops, model, isolation };
    }
}

#[test]
fn every_kind_of_operation_does_what_the_model_does() {
    let is_long = std::env::var("IOSTRATA_SOAK").is_ok();
    let seeds = if is_long { 2_000 } else { 30 };
    for seed in 0..seeds {
        let failed = std::panic::catch_unwind(|| run(seed)).is_err();
        assert!(!failed, "seed {seed}");
    }
}
