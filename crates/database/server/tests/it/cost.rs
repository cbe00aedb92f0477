//! What this crate costs, measured on request (`IOSTRATA_COST=1`).

use std::time::{Duration, Instant};
use std::{env, thread};

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Op, OpId, Rows, Schema, SessionOptions, Table,
    Target, Value,
};
use rustix::time::{ClockId, clock_gettime};

use super::fixture::{Place, ints, on_each_server, schema};

fn is_asked() -> bool {
    let is_asked = env::var("IOSTRATA_COST").is_ok();
    if !is_asked {
        eprintln!("skipped: a measurement; set IOSTRATA_COST=1");
    }
    is_asked
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Microseconds of this thread and of the wall clock for each call.
fn timed(calls: u32, mut call: impl FnMut(u32)) -> (f64, f64) {
    (0..200).for_each(&mut call);
    let (cpu, wall) = (thread_cpu(), Instant::now());
    (0..calls).for_each(&mut call);
    let per_call = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(calls);
    (per_call(thread_cpu() - cpu), per_call(wall.elapsed()))
}

#[test]
fn statements_cost_little() {
    if !is_asked() {
        return;
    }
    on_each_server("cost", |place| {
        let schema = schema();
        place.make(&schema);
        let change = |returns| Access::Modify {
            prefix: 2,
            set: vec![
                Assign { column: 2, change: Change::SubtractRefill { least: 10, by: 91 } },
                Assign { column: 3, change: Change::Add },
            ],
            returns,
        };
        let op = |access| Op { name: "measured", table: 0, access };
        let ops = vec![
            op(Access::Insert),
            op(Access::Get { columns: vec![4], locks: false }),
            op(change(vec![])),
            op(change(vec![2, 4])),
        ];
        let options = SessionOptions { ops: ops.into(), ..Default::default() };
        let mut session = place.session_with(&schema, options.clone()).unwrap();
        let mut args = Vec::new();
        for item in 0..1000 {
            args.extend(ints(&[1, item, 50, 100]));
            args.extend(["0123456789012345678901234567890123456789".into(), Value::Null]);
        }
        session.run(0, &args);
        session.session.commit().unwrap();
        let mut out = Rows::new(1);
        for as_text in [false, true] {
            let options = SessionOptions { autocommit: true, as_text, ..options.clone() };
            let mut session = place.session_with(&schema, options).unwrap().session;
            let (cpu, wall) = timed(30_000, |at| {
                let key = [Value::Int(1), Value::Int(i64::from(at * 7 % 1000))];
                session.run(OpId(1), &key, &mut out).unwrap();
            });
            eprintln!("point select, text {as_text}: {cpu:.2} us of CPU, {wall:.2} us");
        }
        for (name, op) in [("returns nothing", 2), ("returns two columns", 3)] {
            let row = |at: u32, line: u32| {
                let item = i64::from((at * 31 + line * 97) % 1000);
                ints(&[1, item, 5, 25])
            };
            let session = &mut session.session;
            let (_, each) = timed(500, |at| {
                for line in 0..10 {
                    session.run(OpId(op), &row(at, line), &mut out).unwrap();
                }
                session.rollback().unwrap();
            });
            let (_, together) = timed(500, |at| {
                let rows: Vec<Vec<Value<'_>>> = (0..10).map(|line| row(at, line)).collect();
                session.run(OpId(op), &rows.concat(), &mut out).unwrap();
                session.rollback().unwrap();
            });
            eprintln!("ten rows, {name}: one by one {each:.0} us, together {together:.0} us");
        }
    });
}

#[test]
fn warehouses_load_fast() {
    if !is_asked() {
        return;
    }
    let loaders: i64 = env::var("IOSTRATA_LOADERS").map_or(4, |text| text.parse().unwrap());
    on_each_server("load", |place| {
        let schema = warehouses();
        place.make(&schema);
        let begin = Instant::now();
        let rows: u64 = thread::scope(|scope| {
            let load = |w: i64| {
                move || (0..schema_tables()).map(|table| load(place, table, w)).sum::<u64>()
            };
            let threads: Vec<_> = (0..loaders)
                .map(|first| {
                    scope.spawn(move || {
                        (1..=4).filter(|w| w % loaders == first).map(|w| load(w)()).sum::<u64>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!("{loaders} loaders: {rows} rows in {seconds:.1} s");
    });
}

fn schema_tables() -> usize {
    warehouses().tables.len()
}

/// The rows of TPC-C that make up its bytes: per warehouse 30 000 customers, 100 000 of stock,
/// 300 000 lines, 30 000 of history.
fn warehouses() -> Schema {
    let int = ColumnType::Int { bytes: 4 };
    let column = |name: String, of| Column { name, of, is_nullable: false };
    let table =
        |name: &str, ints: usize, amounts: usize, texts: &[u16], key: usize| Table {
            name: name.to_owned(),
            columns: (0..ints)
                .map(|at| column(format!("i{at}"), int))
                .chain((0..amounts).map(|at| {
                    column(format!("a{at}"), ColumnType::Decimal { digits: 12, scale: 2 })
                }))
                .chain(
                    texts
                        .iter()
                        .enumerate()
                        .map(|(at, most)| column(format!("t{at}"), ColumnType::Varchar(*most))),
                )
                .collect(),
            key: (0..key).collect(),
            indexes: Vec::new(),
            auto_increment: false,
        };
    let customer = [16, 2, 16, 20, 20, 20, 2, 9, 16, 500];
    let stock = [24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 50];
    Schema {
        tables: vec![
            table("customer", 6, 5, &customer, 3),
            table("stock", 6, 0, &stock, 2),
            table("line", 8, 1, &[24], 4),
            table("history", 5, 1, &[24], 0),
        ],
    }
}

fn load(place: &Place, table: usize, w: i64) -> u64 {
    let schema = warehouses();
    let rows = [30_000, 100_000, 300_000, 30_000][table];
    let letters = [b'x'; 500];
    let mut at = 0;
    let mut fill = |out: &mut Rows| {
        let columns = &schema.tables[table].columns;
        out.clear(columns.len());
        let end = (at + 500).min(rows);
        while at < end {
            for (number, column) in columns.iter().enumerate() {
                out.push(match (number, column.of) {
                    (0, _) => Value::Int(w),
                    (1, _) => Value::Int(at),
                    (_, ColumnType::Varchar(most)) => {
                        let most = usize::from(most);
                        Value::Text(&letters[..most - most / 5])
                    }
                    _ => Value::Int(at % 10_000),
                });
            }
            at += 1;
        }
    };
    place.target.load(&schema, table, Some((0, w)), &mut fill).unwrap()
}
