//! Loading on real servers: side by side, again, and with what does not fit.

use std::thread;

use iostrata_database::target::{Access, ColumnType, Part, Rows, Schema, Target, TargetError};

use super::fixture::{Place, alone_on_each_server, ints, on_each_server, schema, statement};

/// Loads so many lines of a warehouse.
fn load(
    place: &Place,
    schema: &Schema,
    table: usize,
    w: i64,
    rows: i64,
) -> Result<u64, TargetError> {
    let part: Part = Some((0, w));
    let mut at = 0;
    place.target.load(schema, table, part, &mut |out| {
        let width = schema.tables[table].columns.len();
        out.clear(width);
        let end = (at + 1000).min(rows);
        while at < end {
            match table {
                1 => {
                    let mut row = ints(&[w, at / 10, at % 10, at % 97, 5, at]);
                    row.push("loaded".into());
                    out.push_row(&row);
                }
                _ => out.push_row(&ints(&[w, at])),
            }
            at += 1;
        }
    })
}

fn count(place: &Place, table: &str) -> Vec<String> {
    let sql = format!("SELECT w, COUNT(*) FROM {table} GROUP BY w ORDER BY w");
    let gives = vec![ColumnType::Int { bytes: 4 }, ColumnType::Int { bytes: 8 }];
    place.session(&schema(), vec![statement(&sql, gives)], false).unwrap().rows(0, &[])
}

#[test]
fn parts_are_loaded_side_by_side_and_in_place_of_themselves() {
    on_each_server("parts", |place| {
        let schema = schema();
        place.make(&schema);
        let loaded = |table, w, rows| load(place, &schema, table, w, rows).unwrap();
        for table in [1, 3] {
            thread::scope(|scope| {
                let threads: Vec<_> =
                    (1..=4).map(|w| scope.spawn(move || loaded(table, w, 20_000))).collect();
                for thread in threads {
                    assert_eq!(thread.join().unwrap(), 20_000);
                }
            });
        }
        // Again, smaller: in place of what was there, and of nothing else.
        assert_eq!(loaded(1, 2, 10), 10);
        assert_eq!(loaded(3, 2, 10), 10);
        let expected = ["1 20000", "2 10", "3 20000", "4 20000"];
        assert_eq!(
            (count(place, "line"), count(place, "heap")),
            (expected.map(String::from).to_vec(), expected.map(String::from).to_vec())
        );
        // A target that has loaded nothing yet looks for what is there.
        let other = iostrata_server::ServerTarget::open(place.address.clone(), None).unwrap();
        let mut left = 3;
        let again = other.load(&schema, 3, Some((0, 4)), &mut |out: &mut Rows| {
            out.clear(2);
            (0..left).for_each(|at| out.push_row(&ints(&[4, at])));
            left = 0;
        });
        assert_eq!(again.unwrap(), 3);
        assert_eq!(count(place, "heap")[3], "4 3");
        let nothing = other.load(&schema, 3, None, &mut |out: &mut Rows| out.clear(2));
        assert_eq!(nothing.unwrap(), 0);
        assert_eq!(count(place, "heap"), [] as [&str; 0]);
    });
}

#[test]
fn what_does_not_fit_is_an_error() {
    alone_on_each_server("fits", |place| {
        let schema = schema();
        for local in ["1", "0"] {
            place.make(&schema);
            place.order(&format!("SET GLOBAL local_infile = {local}")).unwrap();
            let load = |rows: &[[i64; 3]]| {
                let mut left = rows.to_vec();
                place.target.load(&schema, 1, None, &mut |out: &mut Rows| {
                    out.clear(7);
                    for [o, n, quantity] in left.drain(..) {
                        let mut row = ints(&[1, o, n, 5, quantity, 0]);
                        row.push("x".into());
                        out.push_row(&row);
                    }
                })
            };
            assert!(load(&[[1, 1, 5], [1, 1, 6]]).is_err(), "a key twice, local {local}");
            assert!(load(&[[1, 2, 70_000]]).is_err(), "too large a number, local {local}");
            assert_eq!(load(&[[1, 1, 5], [1, 2, 6]]).unwrap(), 2);
        }
        place.order("SET GLOBAL local_infile = 1").unwrap();
        let access = Access::Get { columns: vec![4], locks: false };
        let ops = vec![iostrata_database::target::Op { name: "get", table: 1, access }];
        let mut session = place.session(&schema, ops, false).unwrap();
        assert_eq!(session.rows(0, &ints(&[1, 1, 2])), ["6"]);
    });
}
