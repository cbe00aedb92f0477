//! What is refused, in which words, and what the target reports about itself.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Index, Isolation, Op, OpId, Order, Rows,
    Schema, Session, SessionOptions, Table, Target, TargetError, Trouble, Value,
};
use iostrata_embedded::EmbeddedTarget;

use crate::against_model::settings;

fn schema() -> Schema {
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let table = Table {
        name: "t".to_owned(),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4 }),
            column("n", ColumnType::Int { bytes: 4 }),
            column("name", ColumnType::Varchar(8)),
        ],
        key: vec![0],
        indexes: vec![Index { name: "by_name".to_owned(), columns: vec![2], is_late: true }],
        auto_increment: false,
    };
    Schema { tables: vec![table] }
}

fn by_name() -> Access {
    Access::Scan {
        index: Some(0),
        prefix: 1,
        is_range: false,
        order: Order::Ascending,
        limit: None,
        locks: false,
        columns: vec![0],
        fold: Fold::Rows,
    }
}

fn options(accesses: Vec<Access>) -> SessionOptions {
    let ops: Vec<Op> =
        accesses.into_iter().map(|access| Op { name: "the op", table: 0, access }).collect();
    SessionOptions { ops: ops.into(), ..SessionOptions::default() }
}

fn add() -> Access {
    let set = vec![Assign { column: 1, change: Change::Add }];
    Access::Modify { prefix: 1, set, returns: vec![1] }
}

/// A target with three rows, all but its index.
fn filled(dir: &std::path::Path, settings: &[(String, String)]) -> (EmbeddedTarget, Arc<Schema>) {
    let schema = Arc::new(schema());
    let target = EmbeddedTarget::open(dir, &schema, settings).unwrap();
    target.create(&schema, 0).unwrap();
    load(&target, &schema, &[1, 2, 3]).unwrap();
    (target, schema)
}

fn load(target: &EmbeddedTarget, schema: &Schema, ids: &[i64]) -> Result<u64, TargetError> {
    let mut ids = ids.iter();
    target.load(schema, 0, None, &mut |rows| {
        rows.clear(3);
        if let Some(id) = ids.next() {
            rows.push_row(&[Value::Int(*id), Value::Int(10), "name".into()]);
        }
    })
}

fn refused<T>(result: Result<T, TargetError>, trouble: Trouble, words: &[&str]) {
    let error = result.err().expect("it is refused");
    assert_eq!(error.trouble, trouble, "{error}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text} lacks {word}");
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let open =
        |settings: &[(String, String)]| EmbeddedTarget::open(dir.path(), &schema(), settings);
    let name = dir.path().display().to_string();
    let unknown = [("buffer_pol_size".to_owned(), "8M".to_owned())];
    let words = ["engine:", &name, "did you mean buffer_pool_size?"];
    refused(open(&unknown), Trouble::NotReady, &words);
    std::fs::write(dir.path().join("precious"), "data").unwrap();
    refused(open(&settings()), Trouble::NotReady, &["precious", "choose an empty directory"]);
    std::fs::remove_file(dir.path().join("precious")).unwrap();
    let held = open(&settings()).unwrap();
    refused(open(&settings()), Trouble::NotReady, &[&name, "end the process that has it"]);
    held.close().unwrap();
    open(&[]).unwrap().close().unwrap();
}

#[test]
fn facts_are_those_of_the_settings_and_the_status_is_published() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.push(("innodb-flush-log-at-trx-commit".to_owned(), "2".to_owned()));
    let (target, _schema) = filled(dir.path(), &settings);
    let facts = target.facts().unwrap();
    assert_eq!((facts.flavour.as_str(), facts.durability.flush_log_at_commit), ("engine", Some(2)));
    assert_eq!(facts.durability.doublewrite.as_deref(), Some("ON"));
    assert!(facts.durability.flush_method.unwrap().starts_with("O_DIRECT"));
    let value = |name: &str| facts.settings.iter().find(|(of, _)| of == name).unwrap().1.clone();
    assert_eq!((value("buffer_pool_size"), value("page_size")), ("8M".into(), "16K".into()));
    let page = iostrata_engine::read_status(dir.path()).unwrap();
    assert_eq!(page.process_id, std::process::id());
    target.close().unwrap();
    // They are kept with the data.
    let again = EmbeddedTarget::open(dir.path(), &schema(), &[]).unwrap();
    assert_eq!(again.facts().unwrap().settings, facts.settings);
}

#[test]
fn what_a_session_cannot_do_is_refused_when_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (target, schema) = filled(dir.path(), &settings());
    let open = |options| target.session(&schema, &options);
    let serializable = SessionOptions { isolation: Isolation::Serializable, ..options(vec![]) };
    refused(open(serializable), Trouble::NotReady, &["serializable", "use repeatable read"]);
    let sql = Access::Statement { sql: "SELECT 1".to_owned(), gives: vec![] };
    refused(open(options(vec![sql])), Trouble::NotReady, &["the op", "SQL"]);
    refused(open(options(vec![by_name()])), Trouble::NotReady, &["by_name", "not been made"]);
    target.finish(&schema).unwrap();
    target.finish(&schema).unwrap();
    assert!(open(options(vec![by_name()])).is_ok());
    let set = vec![Assign { column: 0, change: Change::Add }];
    let of_key = Access::Modify { prefix: 1, set, returns: vec![] };
    refused(open(options(vec![of_key])), Trouble::NotReady, &["column id", "does not change"]);
    refused(target.create(&schema, 0), Trouble::Exists, &["there is a table t already"]);
    refused(target.load(&schema, 0, Some((0, 1)), &mut |_| ()), Trouble::NotReady, &["part"]);
    target.close().unwrap();
    // As another table of that name the rows would be misread.
    let mut other = (*schema).clone();
    other.tables[0].columns[1].of = ColumnType::Int { bytes: 8 };
    let other = Arc::new(other);
    let target = EmbeddedTarget::open(dir.path(), &other, &[]).unwrap();
    let refusal = target.session(&other, &options(vec![Access::Insert]));
    refused(refusal, Trouble::NotReady, &["table t", "other columns"]);
    target.remove(&other, 0).unwrap();
    assert!(target.present(&other).unwrap().is_empty());
    target.create(&other, 0).unwrap();
    assert!(target.session(&other, &options(vec![Access::Insert])).is_ok());
}

#[test]
fn a_load_that_did_not_end_is_not_used_and_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (target, schema) = filled(dir.path(), &settings());
    refused(load(&target, &schema, &[1, 2, 2]), Trouble::Failed, &["load table t", "not above"]);
    let open = || target.session(&schema, &options(vec![by_name()]));
    refused(open(), Trouble::NotReady, &["not loaded to its end", "load it again"]);
    refused(load(&target, &schema, &[1, 1 << 40]), Trouble::Failed, &["beyond column id"]);
    assert_eq!(load(&target, &schema, &[4, 5]).unwrap(), 2);
    target.finish(&schema).unwrap();
    let mut session = open().unwrap();
    let mut out = Rows::default();
    session.begin().unwrap();
    assert_eq!(session.run(OpId(0), &["name".into()], &mut out).unwrap(), 2);
    assert_eq!((out.get(0, 0), out.get(1, 0)), (Value::Int(4), Value::Int(5)));
}

#[test]
fn misuse_is_an_error_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (target, schema) = filled(dir.path(), &settings());
    let mut session = target.session(&schema, &options(vec![add(), Access::Insert])).unwrap();
    let mut out = Rows::default();
    let add = |session: &mut Box<dyn Session>, args: &[Value<'_>], out: &mut Rows| {
        session.run(OpId(0), args, out)
    };
    let one = [Value::Int(1), Value::Int(5)];
    refused(add(&mut session, &one, &mut out), Trouble::Failed, &["no transaction was begun"]);
    refused(session.commit(), Trouble::Failed, &["nothing to commit"]);
    session.rollback().unwrap();
    session.begin().unwrap();
    refused(session.begin(), Trouble::Failed, &["a transaction is open"]);
    refused(add(&mut session, &one[..1], &mut out), Trouble::Failed, &["takes 2", "1 were given"]);
    // The first row is taken back with the second one.
    let two = [one[0], one[1], Value::Int(2), Value::Int(i64::from(i32::MAX))];
    refused(add(&mut session, &two, &mut out), Trouble::Failed, &["beyond column n"]);
    let row = |id| [Value::Int(id), Value::Int(0), "x".into()];
    let rows = [row(9), row(3)].concat();
    refused(session.run(OpId(1), &rows, &mut out), Trouble::Exists, &["a row with the key"]);
    assert_eq!(add(&mut session, &one, &mut out).unwrap(), 1);
    assert_eq!(out.get(0, 0), Value::Int(10), "as it was loaded");
    assert_eq!(add(&mut session, &[Value::Int(9), Value::Int(0)], &mut out).unwrap(), 0);
    let ticket = session.commit().unwrap();
    assert!(session.settle(ticket, true).unwrap() && session.settle(ticket, false).unwrap());
    let foreign = session.settle(iostrata_database::target::Ticket(7), false);
    refused(foreign, Trouble::Failed, &["ticket 7"]);
    refused(session.run(OpId(5), &[], &mut out), Trouble::Failed, &["no operation 5"]);
    assert_eq!(session.cost().statements, 5);
}

#[test]
fn a_deadlock_ends_one_transaction_to_be_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.push(("lock_wait_timeout".to_owned(), "50".to_owned()));
    let (target, schema) = filled(dir.path(), &settings);
    let both_have_one = std::sync::Barrier::new(2);
    let run = |first: i64, second: i64| {
        let mut session = target.session(&schema, &options(vec![add()])).unwrap();
        let mut out = Rows::default();
        let args = |id| [Value::Int(id), Value::Int(1)];
        session.begin().unwrap();
        session.run(OpId(0), &args(first), &mut out).unwrap();
        both_have_one.wait();
        let second = session.run(OpId(0), &args(second), &mut out);
        match second {
            Ok(_) => {
                let ticket = session.commit().unwrap();
                assert!(session.settle(ticket, true).unwrap());
                None
            }
            Err(error) => {
                assert!(session.begin().is_ok(), "the transaction is over");
                Some((error.trouble, error.code))
            }
        }
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(2, 1));
        (run(1, 2), other.join().unwrap())
    });
    let victims: Vec<_> = one.into_iter().chain(other).collect();
    assert_eq!(victims, [(Trouble::Retry, "deadlock".to_owned())]);
}
