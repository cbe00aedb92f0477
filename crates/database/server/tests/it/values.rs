//! Values come back as they went, whichever way they travel.

use std::cell::RefCell;

use iostrata_database::target::{Access, Op, Target, Value};
use proptest::prelude::*;

use super::fixture::{Place, alone_on_each_server, on_each_server, schema, statement};

/// Characters with a meaning on the way: to SQL, to the protocol, to a terminal.
const ODD: &str = "'\"\\\0\n\r\t?%_`\u{1a};#-/*\u{e4}\u{20ac}";

fn texts() -> impl Strategy<Value = String> {
    let odd: Vec<char> = ODD.chars().collect();
    let char = prop_oneof![proptest::char::range(' ', '~'), proptest::sample::select(odd)];
    proptest::collection::vec(char, 0..40).prop_map(|chars| chars.into_iter().collect())
}

fn round_trip(place: &Place, mode: &str) {
    let schema = schema();
    place.make(&schema);
    let ops = vec![
        Op { name: "insert", table: 0, access: Access::Insert },
        Op { name: "get", table: 0, access: Access::Get { columns: vec![3, 4, 5], locks: false } },
        Op { name: "delete", table: 0, access: Access::Delete },
        statement(&format!("SET SESSION sql_mode = '{mode}'"), vec![]),
    ];
    let sessions = [false, true].map(|as_text| {
        let mut session = place.session(&schema, ops.clone(), as_text).unwrap();
        session.run(3, &[]);
        RefCell::new(session)
    });
    let strategy = (texts(), -999_999_999_999_i64..=999_999_999_999, 0..253_402_300_800_i64);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(60));
    let result = runner.run(&strategy, |(text, amount, moment)| {
        for session in &sessions {
            let session = &mut *session.borrow_mut();
            let key = [Value::Int(1), Value::Int(1)];
            let values = [amount.into(), Value::from(text.as_str()), moment.into()];
            session.run(0, &[&key[..], &[Value::Int(7)], &values].concat());
            session.run(1, &key);
            let back: Vec<Value<'_>> = session.out.row(0).collect();
            prop_assert_eq!(&back, &values);
            session.session.rollback().unwrap();
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{} with sql_mode `{mode}`: {error}", place.address));
}

#[test]
fn values_come_back_as_they_went() {
    on_each_server("values", |place| {
        // Characters of more than one byte need a character set that has them.
        let database = place.address.database.as_deref().unwrap();
        place.order(&format!("ALTER DATABASE `{database}` CHARACTER SET utf8mb4")).unwrap();
        round_trip(place, "STRICT_TRANS_TABLES");
        round_trip(place, "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES");
    });
}

#[test]
fn loaded_values_come_back_as_they_went() {
    alone_on_each_server("loaded", |place| {
        let database = place.address.database.as_deref().unwrap();
        place.order(&format!("ALTER DATABASE `{database}` CHARACTER SET utf8mb4")).unwrap();
        let schema = schema();
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1));
        let rows = proptest::collection::vec((texts(), any::<i32>(), 0..9_999_999_999_i64), 300);
        let ways = [None, Some("0")];
        runner
            .run(&rows, |rows| {
                for way in ways {
                    load_and_compare(place, &schema, &rows, way);
                }
                Ok(())
            })
            .unwrap();
    });
}

fn load_and_compare(
    place: &Place,
    schema: &iostrata_database::target::Schema,
    rows: &[(String, i32, i64)],
    local: Option<&str>,
) {
    if let Some(value) = local {
        place.order(&format!("SET GLOBAL local_infile = {value}")).unwrap();
    }
    place.make(schema);
    let values = |at: usize| {
        let (text, amount, moment) = &rows[at];
        let (key, amount) = (Value::Int(at as i64), Value::Int(i64::from(*amount)));
        [Value::Int(1), key, 7.into(), amount, text.as_str().into(), (*moment).into()]
    };
    let mut at = 0;
    let loaded = place.target.load(schema, 0, None, &mut |out| {
        out.clear(6);
        for _ in 0..100.min(rows.len() - at) {
            out.push_row(&values(at));
            at += 1;
        }
    });
    if local.is_some() {
        place.order("SET GLOBAL local_infile = 1").unwrap();
    }
    assert_eq!(loaded.unwrap(), rows.len() as u64);
    let get = Access::Get { columns: (0..6).collect(), locks: false };
    let ops = vec![Op { name: "get", table: 0, access: get }];
    let mut session = place.session(schema, ops, false).unwrap();
    for at in 0..rows.len() {
        session.run(0, &[Value::Int(1), Value::Int(at as i64)]);
        assert_eq!(session.out.row(0).collect::<Vec<_>>(), values(at));
    }
}
