//! The operations, declared.

use std::sync::Arc;

use iostrata_database::target::{Access, Assign, Change, Fold, Op, OpId, Order, Schema};

use crate::stress::schema::TableId;

/// The operations, by their places.
pub(super) const OBJECT: OpId = OpId(0);
pub(super) const SECTION: OpId = OpId(1);
pub(super) const ZONE: OpId = OpId(2);
pub(super) const HISTORY: OpId = OpId(3);
pub(super) const STATUSES: OpId = OpId(4);
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
pub(super) fn scan_all(schema: &Schema, table: TableId, names: &[&str]) -> Op {
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
