//! Every declared operation gives the same on every server, prepared and as text.

use iostrata_database::target::{
    Access, Assign, Change, ColumnType, Fold, Isolation, JoinBelow, Op, OpId, Order, Schema,
    SessionOptions, Target, Value,
};

use super::fixture::{Driven, Place, ints, on_each_server, printed, schema, statement};

const REFILL: Change = Change::SubtractRefill { least: 10, by: 91 };

fn op(table: usize, access: Access) -> Op {
    Op { name: "tested", table, access }
}

fn scan(prefix: usize, is_range: bool, columns: Vec<usize>, fold: Fold) -> Access {
    let (index, order, limit, locks) = (None, Order::Ascending, None, false);
    Access::Scan { index, prefix, is_range, order, limit, locks, columns, fold }
}

fn set(column: usize, change: Change) -> Assign {
    Assign { column, change }
}

/// The stock (1..=2, 1..=5; 20, 1.50, "note", 0) in a session that has these operations and, first,
/// an insertion.
fn stocked(place: &Place, schema: &Schema, mut ops: Vec<Op>, as_text: bool) -> Driven {
    ops.insert(0, op(0, Access::Insert));
    place.make(schema);
    filled(place.session(schema, ops, as_text).unwrap())
}

fn filled(mut session: Driven) -> Driven {
    session.session.begin().unwrap();
    let mut args = Vec::new();
    for at in 0..10 {
        args.extend(ints(&[at / 5 + 1, at % 5 + 1, 20, 150]));
        args.extend([Value::from("note"), Value::Int(0)]);
    }
    assert_eq!(session.run(0, &args).0, 10);
    session
}

fn all_ways(database: &str, ops: &[Op], test: impl Fn(&mut Driven) + Sync) {
    on_each_server(database, |place| {
        let schema = schema();
        place.make(&schema);
        let mut plain = vec![op(0, Access::Insert)];
        plain.extend_from_slice(ops);
        let options = SessionOptions { ops: plain.into(), ..Default::default() };
        let mut least = filled(Driven::open(&place.least(), &schema, &options).unwrap());
        test(&mut least);
        least.session.rollback().unwrap();
        for as_text in [false, true] {
            let mut session = stocked(place, &schema, ops.to_vec(), as_text);
            test(&mut session);
            session.session.rollback().unwrap();
        }
    });
}

#[test]
fn rows_are_got_by_their_keys() {
    let get = |columns, locks| op(0, Access::Get { columns, locks });
    all_ways(
        "get",
        &[get(vec![2, 3, 4, 5], false), get(vec![1], true), get(vec![], false)],
        |session| {
            assert_eq!(session.run(1, &ints(&[1, 3])), (1, vec!["20 150 \"note\" 0".to_owned()]));
            assert_eq!(session.run(1, &ints(&[9, 9])).0, 0);
            let mut rows = session.rows(2, &ints(&[1, 3, 2, 1, 9, 9, 1, 3]));
            rows.sort_unstable();
            assert_eq!(rows, ["1", "3"]);
            // More keys than one statement holds, each named twice.
            let many: Vec<i64> = (0..600).flat_map(|at| [1 + at % 2, 1 + at / 2 % 150]).collect();
            assert_eq!(session.run(2, &ints(&many)).0, 10);
            assert_eq!(session.run(3, &ints(&[1, 1])).0, 1);
            assert_eq!(session.run(1, &[]), (0, vec![]));
        },
    );
}

#[test]
fn scans_come_in_order_and_fold() {
    let last = Access::Scan {
        index: None,
        prefix: 1,
        is_range: false,
        order: Order::Descending,
        limit: Some(2),
        locks: true,
        columns: vec![1, 0],
        fold: Fold::Rows,
    };
    let limited = Access::Scan {
        index: None,
        prefix: 1,
        is_range: false,
        order: Order::Descending,
        limit: Some(2),
        locks: false,
        columns: vec![1],
        fold: Fold::Sum,
    };
    let ops = [
        op(0, scan(1, true, vec![1], Fold::Rows)),
        op(0, last),
        op(0, scan(1, true, vec![2], Fold::Sum)),
        op(0, scan(1, true, vec![3], Fold::Sum)),
        op(0, scan(0, false, vec![0], Fold::Distinct)),
        op(0, scan(1, false, vec![1], Fold::Sorted)),
        op(0, limited),
    ];
    all_ways("scan", &ops, |session| {
        assert_eq!(session.rows(1, &ints(&[1, 2, 4])), ["2", "3", "4"]);
        assert_eq!(session.run(2, &ints(&[2])), (2, vec!["5 2".to_owned(), "4 2".to_owned()]));
        assert_eq!(session.rows(3, &ints(&[1, 1, 3])), ["60"]);
        assert_eq!(session.rows(4, &ints(&[1, 1, 3])), ["450"], "cents");
        assert_eq!(session.rows(3, &ints(&[7, 1, 3])), ["0"], "the sum of no rows");
        assert_eq!(session.rows(5, &[]), ["1", "2"]);
        assert_eq!(session.rows(6, &ints(&[2])), ["1", "2", "3", "4", "5"]);
        assert_eq!(session.rows(7, &ints(&[2])), ["9"], "5 + 4");
        let mut streamed = Vec::new();
        let mut keep = |row: &[Value<'_>]| streamed.push(row[0].int());
        session.session.stream(OpId(1), &ints(&[1, 2, 4]), &mut keep).unwrap();
        assert_eq!(streamed, [2, 3, 4]);
    });
}

#[test]
fn one_row_is_changed_by_expressions() {
    let all = vec![
        set(2, REFILL),
        set(3, Change::Add),
        set(4, Change::Prepend { most: 6 }),
        set(5, Change::Set),
    ];
    let changes = |returns| op(0, Access::Modify { prefix: 2, set: all.clone(), returns });
    let get = op(0, Access::Get { columns: vec![2, 3, 4, 5], locks: false });
    all_ways("modify", &[changes(vec![]), changes(vec![2, 4]), get], |session| {
        let args = |item: i64, take: i64, text: Value<'static>| {
            let mut args = ints(&[1, item, take, -25]);
            args.extend([text, Value::Int(86_399)]);
            args
        };
        assert_eq!(session.run(1, &args(1, 11, "ab".into())), (1, vec![]));
        assert_eq!(session.rows(3, &ints(&[1, 1])), ["100 125 \"abnote\" 86399"]);
        assert_eq!(session.run(1, &args(1, 0, Value::Null)).0, 1);
        let (found, before) = session.run(2, &args(1, 90, "xyz".into()));
        assert_eq!((found, before), (1, vec!["100 \"abnote\"".to_owned()]));
        assert_eq!(session.rows(3, &ints(&[1, 1])), ["10 75 \"xyzabn\" 86399"]);
        assert_eq!(session.run(2, &args(9, 90, "x".into())), (0, vec![]));
        assert_eq!(session.run(1, &args(9, 90, "x".into())), (0, vec![]));
    });
}

#[test]
fn many_rows_are_changed_in_the_order_of_the_arguments() {
    let changes = vec![set(2, REFILL), set(3, Change::Add), set(4, Change::Prepend { most: 9 })];
    let with = |returns| op(0, Access::Modify { prefix: 2, set: changes.clone(), returns });
    let blind =
        op(0, Access::Modify { prefix: 2, set: vec![set(5, Change::Set)], returns: vec![] });
    let get = op(0, Access::Get { columns: vec![2, 3, 4, 5], locks: false });
    all_ways("many", &[with(vec![1, 2, 3]), with(vec![]), blind, get], |session| {
        let row = |item: i64, take: i64, more: i64, text: &'static str| {
            [Value::Int(1), item.into(), take.into(), more.into(), text.into()]
        };
        let args = [row(3, 5, 1, "a"), row(1, 12, -200, "b"), row(9, 1, 1, "c"), row(3, 8, 1, "d")];
        let (found, before) = session.run(1, &args.concat());
        assert_eq!(
            (found, before),
            (3, vec!["3 20 150".into(), "1 20 150".into(), "3 15 151".into()])
        );
        assert_eq!(session.rows(4, &ints(&[1, 3])), ["98 152 \"danote\" 0"]);
        assert_eq!(session.rows(4, &ints(&[1, 1])), ["99 -50 \"bnote\" 0"]);
        assert_eq!(session.run(2, &args.concat()), (3, vec![]));
        assert_eq!(session.rows(4, &ints(&[1, 3])), ["85 154 \"dadanote\" 0"]);
        let mut moments = ints(&[1, 2, 5, 1, 4, 6, 1, 2]);
        moments.push(Value::Null);
        session.run(3, &moments);
        assert_eq!(session.rows(4, &ints(&[1, 2])), ["20 150 \"note\" null"]);
        assert_eq!(session.rows(4, &ints(&[1, 4])), ["20 150 \"note\" 6"]);
    });
}

#[test]
fn rows_below_a_key_are_changed_together() {
    let change = |returns| {
        let set = vec![set(2, Change::Add), set(3, Change::AddConst(50))];
        op(0, Access::Modify { prefix: 1, set, returns })
    };
    let sum = op(0, scan(0, false, vec![2], Fold::Sum));
    let get = op(0, Access::Get { columns: vec![2, 3], locks: false });
    all_ways("below", &[change(vec![1, 2]), change(vec![]), sum, get], |session| {
        let (found, before) = session.run(1, &ints(&[2, 1, 1, 1]));
        assert_eq!(found, 10);
        assert_eq!(
            (before[0].as_str(), before[5].as_str(), before[9].as_str()),
            ("1 20", "1 20", "5 20")
        );
        assert_eq!(session.rows(3, &[]), ["210"]);
        assert_eq!(session.run(2, &ints(&[1, 2, 2, 3])).0, 10, "each its own");
        assert_eq!(session.rows(4, &ints(&[2, 5])), ["24 250"]);
        let (found, before) = session.run(1, &ints(&[2, 1, 2, 1]));
        assert_eq!((found, before[5].as_str()), (10, "1 25"), "named twice, changed twice");
        assert_eq!(session.rows(4, &ints(&[2, 5])), ["26 350"]);
        assert_eq!(session.run(1, &ints(&[7, 1])), (0, vec![]));
    });
}

#[test]
fn rows_are_removed_counted_and_counted_up() {
    let below = JoinBelow { prefix: 1, other: 0, leads_by: vec![0, 3], tested: 2 };
    let ops = [
        op(0, Access::Delete),
        op(1, Access::Insert),
        op(1, Access::CountBelow(below)),
        op(2, Access::Insert),
        op(2, scan(0, false, vec![0, 1], Fold::Rows)),
        statement(
            "SELECT i, note FROM stock WHERE w = ? AND note <> ? AND '?' = '?'",
            vec![ColumnType::Int { bytes: 4 }, ColumnType::Varchar(50)],
        ),
        op(1, scan(3, false, vec![5, 6], Fold::Rows)),
    ];
    all_ways("rest", &ops, |session| {
        let line = |o: i64, n: i64, item: i64| {
            let mut line = ints(&[1, o, n, item, 5]);
            line.extend([Value::Null, "new".into()]);
            line
        };
        let lines = [line(1, 1, 1), line(1, 2, 2), line(2, 1, 2), line(2, 2, 77), line(3, 1, 3)];
        assert_eq!(session.run(2, &lines.concat()).0, 5);
        assert_eq!(session.rows(3, &ints(&[1, 1, 2, 21])), ["2"]);
        assert_eq!(session.rows(3, &ints(&[1, 1, 2, 20])), ["0"]);
        assert_eq!(session.rows(7, &ints(&[1, 3, 1])), ["null \"new\""]);
        assert_eq!(session.run(1, &ints(&[1, 1, 1, 1, 9, 9, 2, 5])).0, 2);
        let logged = [Value::Null, "a".into(), Value::Null, Value::Null];
        assert_eq!(session.run(4, &logged).0, 2);
        let rows = session.rows(5, &[]);
        assert!(rows[0].ends_with(" \"a\"") && rows[1].ends_with(" null"), "{rows:?}");
        let args = [Value::Int(1), "it's".into()];
        assert_eq!(session.run(6, &args).0, 4);
        assert_eq!(printed(&session.out)[0], "2 \"note\"");
    });
}

#[test]
fn tables_are_found_and_late_indexes_made_once() {
    on_each_server("tables", |place| {
        let schema = schema();
        assert_eq!(place.target.present(&schema).unwrap(), [] as [usize; 0]);
        place.make(&schema);
        assert_eq!(place.target.present(&schema).unwrap(), [0, 1, 2, 3]);
        for _ in 0..2 {
            place.target.finish(&schema).unwrap();
        }
        place.target.remove(&schema, 3).unwrap();
        assert_eq!(place.target.present(&schema).unwrap(), [0, 1, 2]);
        let text = "SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics \
                    WHERE table_schema = DATABASE() AND table_name = 'line'";
        let ops = vec![statement(text, vec![ColumnType::Int { bytes: 8 }])];
        let mut session = place.session(&schema, ops, false).unwrap();
        assert_eq!(session.rows(0, &[]), ["3"]);
    });
}

#[test]
fn scans_take_the_order_of_the_key_and_of_indexes() {
    on_each_server("order", |place| {
        let schema = schema();
        place.make(&schema);
        let by_item = Access::Scan {
            index: Some(0),
            prefix: 1,
            is_range: false,
            order: Order::Descending,
            limit: Some(1),
            locks: false,
            columns: vec![1],
            fold: Fold::Rows,
        };
        let sorted = "SHOW SESSION STATUS LIKE 'Sort_rows'";
        let ops = vec![
            op(1, Access::Insert),
            op(1, by_item),
            op(1, scan(1, true, vec![2], Fold::Rows)),
            statement(sorted, vec![ColumnType::Varchar(64), ColumnType::Int { bytes: 8 }]),
        ];
        let mut session = place.session(&schema, ops, false).unwrap();
        let mut args = Vec::new();
        for o in 0..200 {
            for n in 0..10 {
                args.extend(ints(&[1, o, n, (o * 7 + n) % 50, 5]));
                args.extend([Value::Null, "new".into()]);
            }
        }
        session.run(0, &args);
        session.session.commit().unwrap();
        place.target.finish(&schema).unwrap();
        session.rows(1, &ints(&[3]));
        session.rows(2, &ints(&[1, 10, 11]));
        assert_eq!(session.rows(3, &[])[0], "\"Sort_rows\" 0");
    });
}

#[test]
fn transactions_are_isolated_as_asked_and_counted() {
    on_each_server("transactions", |place| {
        let schema = schema();
        let get = op(0, Access::Get { columns: vec![2], locks: false });
        let add =
            op(0, Access::Modify { prefix: 2, set: vec![set(2, Change::Add)], returns: vec![] });
        let mut writer = stocked(place, &schema, vec![add.clone(), get.clone()], false);
        writer.session.commit().unwrap();
        let open = |isolation, autocommit| {
            let ops = vec![get.clone(), add.clone()].into();
            let options = SessionOptions { ops, isolation, autocommit, as_text: false };
            place.session_with(&schema, options).unwrap()
        };
        let mut repeatable = open(Isolation::RepeatableRead, false);
        let mut committed = open(Isolation::ReadCommitted, false);
        for reader in [&mut repeatable, &mut committed] {
            reader.session.begin().unwrap();
            assert_eq!(reader.rows(0, &ints(&[1, 1])), ["20"]);
        }
        writer.run(1, &ints(&[1, 1, 5]));
        assert_eq!(committed.rows(0, &ints(&[1, 1])), ["20"], "not committed yet");
        let ticket = writer.session.commit().unwrap();
        assert!(writer.session.settle(ticket, false).unwrap());
        assert_eq!(repeatable.rows(0, &ints(&[1, 1])), ["20"]);
        assert_eq!(committed.rows(0, &ints(&[1, 1])), ["25"]);
        // One preparation, two statements, and no round trip to begin.
        let cost = committed.session.cost();
        assert_eq!((cost.round_trips, cost.statements), (4, 3));
        committed.session.rollback().unwrap();
        committed.session.rollback().unwrap();
        let cost = committed.session.cost();
        assert_eq!((cost.round_trips, cost.statements), (5, 4), "nothing was left to roll back");
        drop(repeatable);
        writer.run(1, &ints(&[1, 1, 7]));
        drop(writer);
        let mut auto = open(Isolation::RepeatableRead, true);
        auto.run(1, &ints(&[1, 1, 1]));
        auto.session.commit().unwrap();
        assert_eq!(auto.session.cost().statements, 1);
        drop(auto);
        assert_eq!(open(Isolation::Serializable, false).rows(0, &ints(&[1, 1])), ["26"]);
    });
}
