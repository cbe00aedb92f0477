//! What fails on a real server, and what is left of it.

use std::thread;

use iostrata_database::target::{
    Access, Assign, Change, ColumnType, Op, OpId, Rows, SessionOptions, Trouble,
};

use super::fixture::{
    Driven, Place, alone_on_each_server, ints, on_each_server, printed, schema, statement,
};

fn ops() -> Vec<Op> {
    let add = |prefix| Access::Modify {
        prefix,
        set: vec![Assign { column: 2, change: Change::AddConst(1) }],
        returns: vec![],
    };
    let op = |table, access| Op { name: "tested", table, access };
    vec![
        op(0, Access::Insert),
        op(0, Access::Get { columns: vec![2], locks: true }),
        op(0, add(2)),
        op(0, Access::Get { columns: vec![2], locks: false }),
        statement("SET SESSION innodb_lock_wait_timeout = 1", vec![]),
        statement("SELECT CONNECTION_ID()", vec![ColumnType::Int { bytes: 8 }]),
    ]
}

fn row(item: i64) -> Vec<iostrata_database::target::Value<'static>> {
    let mut row = ints(&[1, item, 20, 0]);
    row.extend(["x".into(), iostrata_database::target::Value::Null]);
    row
}

fn two(place: &Place) -> (Driven, Driven) {
    let schema = schema();
    place.make(&schema);
    let mut first = place.session(&schema, ops(), false).unwrap();
    first.run(0, &[row(1), row(2)].concat());
    first.session.commit().unwrap();
    (first, place.session(&schema, ops(), false).unwrap())
}

fn attempt(session: &mut Driven, op: usize, args: &[i64]) -> Result<u64, Trouble> {
    let result = session.session.run(OpId(op), &ints(args), &mut session.out);
    result.map_err(|error| error.trouble)
}

#[test]
fn of_two_that_wait_for_each_other_one_is_to_retry() {
    on_each_server("deadlock", |place| {
        let (mut first, mut second) = two(place);
        first.run(1, &ints(&[1, 1]));
        second.run(1, &ints(&[1, 2]));
        let (one, other) = thread::scope(|scope| {
            let waiting = scope.spawn(|| attempt(&mut first, 1, &[1, 2]));
            let other = attempt(&mut second, 1, &[1, 1]);
            if other.is_ok() {
                // The other one was the victim, or waits no more once this one ends.
                second.session.rollback().unwrap();
            }
            (waiting.join().unwrap(), other)
        });
        let both = [one, other];
        assert!(both.contains(&Err(Trouble::Retry)) && both.contains(&Ok(1)), "{both:?}");
        // Both can go on.
        first.session.rollback().unwrap();
        second.session.rollback().unwrap();
        for session in [&mut first, &mut second] {
            assert_eq!(attempt(session, 1, &[1, 1]), Ok(1));
            session.session.commit().unwrap();
        }
    });
}

#[test]
fn a_wait_that_runs_out_leaves_nothing_of_the_transaction() {
    on_each_server("lock_waits", |place| {
        let (mut first, mut second) = two(place);
        second.run(4, &[]);
        first.run(1, &ints(&[1, 1]));
        second.run(0, &row(3));
        assert_eq!(attempt(&mut second, 1, &[1, 1]), Err(Trouble::Retry));
        second.session.commit().unwrap();
        assert_eq!(attempt(&mut first, 3, &[1, 3]), Ok(0), "the insertion was rolled back");
    });
}

#[test]
fn a_row_that_changed_since_it_was_read_is_locked_as_it_is_or_to_retry() {
    on_each_server("changed", |place| {
        let (mut first, mut second) = two(place);
        assert_eq!(first.rows(3, &ints(&[1, 1])), ["20"]);
        second.run(2, &ints(&[1, 1]));
        second.session.commit().unwrap();
        // Some servers refuse to lock what their snapshot does not show.
        match attempt(&mut first, 1, &[1, 1]) {
            Ok(_) => assert_eq!(printed(&first.out), ["21"]),
            Err(trouble) => assert_eq!(trouble, Trouble::Retry),
        }
        first.session.rollback().unwrap();
        assert_eq!(first.rows(1, &ints(&[1, 1])), ["21"]);
    });
}

#[test]
fn a_row_that_is_there_exists() {
    on_each_server("exists", |place| {
        let (mut first, _) = two(place);
        let error = first.session.run(OpId(0), &row(1), &mut Rows::new(0)).unwrap_err();
        assert_eq!((error.trouble, error.code.as_str()), (Trouble::Exists, "1062"), "{error}");
        let error = first.session.run(OpId(1), &ints(&[1]), &mut Rows::new(0)).unwrap_err();
        assert_eq!(error.code, "arguments", "{error}");
    });
}

#[test]
fn a_session_whose_server_cut_it_is_gone() {
    on_each_server("gone", |place| {
        let (mut first, _) = two(place);
        let id = first.rows(5, &[])[0].clone();
        place.order(&format!("KILL {id}")).unwrap();
        thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(attempt(&mut first, 3, &[1, 1]), Err(Trouble::Gone));
    });
}

#[test]
fn more_statements_than_the_server_prepares_are_sent_as_text() {
    alone_on_each_server("statements", |place| {
        let (mut first, _) = two(place);
        place.order("SET GLOBAL max_prepared_stmt_count = 0").unwrap();
        let result = attempt(&mut first, 3, &[1, 1]);
        let default = "SET GLOBAL max_prepared_stmt_count = 16382";
        place.order(default).unwrap();
        assert_eq!(result, Ok(1));
    });
}

#[test]
fn nothing_is_prepared_within_a_transaction() {
    on_each_server("late", |place| {
        let schema = schema();
        place.make(&schema);
        let access = Access::Get { columns: vec![2], locks: false };
        let get = Op { name: "get", table: 0, access };
        let gives = vec![ColumnType::Varchar(64), ColumnType::Int { bytes: 8 }];
        let count = statement("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'", gives);
        let mut driven = place.session(&schema, vec![get, count], false).unwrap();
        driven.session.begin().unwrap();
        driven.rows(0, &ints(&[1, 1]));
        let before = driven.rows(1, &[]);
        assert!(before[0].ends_with(" 1"), "the first statement opens it: {before:?}");
        // Two keys are another statement than one.
        driven.rows(0, &ints(&[1, 1, 1, 2]));
        assert_eq!(driven.rows(1, &[]), before);
        driven.session.commit().unwrap();
        driven.session.begin().unwrap();
        driven.rows(0, &ints(&[1, 1, 1, 2]));
        let after = driven.rows(1, &[]);
        assert!(after[0].ends_with(" 2"), "{after:?}");
    });
}

#[test]
fn as_many_sessions_as_the_server_takes_are_opened() {
    on_each_server("sessions", |place| {
        let open = || {
            let options = SessionOptions::default();
            place.session_with(&schema(), options).map(drop).map_err(|error| error.trouble)
        };
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results, [Ok(()); 16]);
    });
}
