//! What an update of the stock of TPC-C costs in redo.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Op, OpId, Rows, Schema, SessionOptions, Table,
    Target, Value,
};
use iostrata_embedded::EmbeddedTarget;
use iostrata_engine::Counter;

use crate::against_model::settings;

/// As TPC-C has it, in its order of columns.
fn stock() -> Table {
    let number = |name: &str, bytes| (name.to_owned(), ColumnType::Int { bytes });
    let mut columns = vec![number("s_w_id", 2), number("s_i_id", 4), number("s_quantity", 2)];
    columns.extend((1..=10).map(|at| (format!("s_dist_{at:02}"), ColumnType::Char(24))));
    columns.push(("s_ytd".to_owned(), ColumnType::Decimal { digits: 8, scale: 0 }));
    columns.extend([number("s_order_cnt", 2), number("s_remote_cnt", 2)]);
    columns.push(("s_data".to_owned(), ColumnType::Varchar(50)));
    let columns =
        columns.into_iter().map(|(name, of)| Column { name, of, is_nullable: name_is_null(of) });
    Table {
        name: "stock".to_owned(),
        columns: columns.collect(),
        key: vec![0, 1],
        indexes: Vec::new(),
        auto_increment: false,
    }
}

/// Only the data may be left out.
fn name_is_null(of: ColumnType) -> bool {
    matches!(of, ColumnType::Varchar(_))
}

#[test]
fn an_update_of_the_stock_logs_at_most_80_bytes() {
    const UPDATES: u64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let schema = Arc::new(Schema { tables: vec![stock()] });
    let target = EmbeddedTarget::open(dir.path(), &schema, &settings()).unwrap();
    let table = &schema.tables[0];
    target.create(&schema, 0).unwrap();
    let mut left = (1..=200).rev().collect::<Vec<i64>>();
    let loaded = target.load(&schema, 0, None, &mut |rows| {
        rows.clear(table.columns.len());
        let Some(item) = left.pop() else { return };
        let mut row = vec![Value::Int(1), Value::Int(item), Value::Int(50)];
        row.extend([Value::Text(b"abcdefghijklmnopqrstuvwx"); 10]);
        row.extend([Value::Int(0); 3]);
        row.push(Value::Text(b"forty characters and a few more of them"));
        rows.push_row(&row);
    });
    assert_eq!(loaded.unwrap(), 200);
    let assign = |name, change| Assign { column: table.column(name), change };
    let set = vec![
        assign("s_quantity", Change::SubtractRefill { least: 10, by: 91 }),
        assign("s_ytd", Change::Add),
        assign("s_order_cnt", Change::AddConst(1)),
        assign("s_remote_cnt", Change::Add),
    ];
    let returns = table.columns_of(&["s_quantity", "s_dist_03", "s_data"]);
    let ops = vec![Op {
        name: "update stock",
        table: 0,
        access: Access::Modify { prefix: 2, set, returns },
    }];
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options).unwrap();
    let before = target.engine().counters()[Counter::LsnCurrent];
    let mut out = Rows::default();
    for item in 1..=UPDATES {
        session.begin().unwrap();
        let args = [1, item as i64, 5, 5, 1].map(Value::Int);
        assert_eq!(session.run(OpId(0), &args, &mut out).unwrap(), 1);
        assert_eq!(out.get(0, 0), Value::Int(50));
        assert_eq!(out.get(0, 1), Value::Text(b"abcdefghijklmnopqrstuvwx"));
        let ticket = session.commit().unwrap();
        assert!(session.settle(ticket, true).unwrap());
    }
    let logged = target.engine().counters()[Counter::LsnCurrent] - before;
    assert!(logged <= 80 * UPDATES, "{} bytes for each", logged / UPDATES);
    assert_eq!(session.cost().statements, UPDATES);
    drop(session);
    target.close().unwrap();
}
