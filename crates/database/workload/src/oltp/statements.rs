//! The tables and statements of the family, declared for every table.

use std::sync::Arc;

use iostrata_stats::Random;
use iostrata_target::{
    Access, Assign, Change, Column, ColumnType, Fold, Index, Op, OpId, Order, Schema, Table,
};

/// Groups of digits in `c` and in `pad`.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
const GROUP_DIGITS: usize = 11;

/// Columns, by their places.
const ID: usize = 0;
const K: usize = 1;
const C: usize = 2;

/// The statements of a table, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
}

const STATEMENTS: usize = 9;

impl Statement {
    /// The operation of a table, counted from 0.
    pub fn of(self, table: u32) -> OpId {
        OpId(table as usize * STATEMENTS + self as usize)
    }
}

/// `sbtest1` and so on.
pub fn schema(tables: u32) -> Schema {
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let table = |number| Table {
        name: format!("sbtest{number}"),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4 }),
            column("k", ColumnType::Int { bytes: 4 }),
            column("c", ColumnType::Char(120)),
            column("pad", ColumnType::Char(60)),
        ],
        key: vec![ID],
        indexes: vec![Index { name: format!("k_{number}"), columns: vec![K], is_late: true }],
        auto_increment: true,
    };
    Schema { tables: (1..=tables).map(table).collect() }
}

pub(super) fn ops(tables: u32) -> Arc<[Op]> {
    let range = |columns: usize, fold| Access::Scan {
        index: None,
        prefix: 0,
        is_range: true,
        order: Order::Any,
        limit: None,
        locks: false,
        columns: vec![columns],
        fold,
    };
    let set = |column, change| {
        let set = vec![Assign { column, change }];
        Access::Modify { prefix: 1, set, returns: Vec::new() }
    };
    let all: [(&str, Access); STATEMENTS] = [
        ("point select", Access::Get { columns: vec![C], locks: false }),
        ("simple range", range(C, Fold::Rows)),
        ("sum range", range(K, Fold::Sum)),
        ("order range", range(C, Fold::Sorted)),
        ("distinct range", range(C, Fold::Distinct)),
        ("index update", set(K, Change::AddConst(1))),
        ("non-index update", set(C, Change::Set)),
        ("delete", Access::Delete),
        ("insert", Access::Insert),
    ];
    let of = |table: u32| {
        all.iter().map(move |(name, access)| {
            let (table, access) = (table as usize, access.clone());
            Op { name, table, access }
        })
    };
    (0..tables).flat_map(of).collect()
}

/// Appends the value of a `c`: groups of random digits with dashes between.
pub(super) fn c_value(random: &mut Random, text: &mut Vec<u8>) {
    groups(random, text, C_GROUPS);
}

/// The same for a `pad`.
pub(super) fn pad_value(random: &mut Random, text: &mut Vec<u8>) {
    groups(random, text, PAD_GROUPS);
}

fn groups(random: &mut Random, text: &mut Vec<u8>, count: usize) {
    for group in 0..count {
        if group > 0 {
            text.push(b'-');
        }
        let mut digits = random.below(10_u64.pow(GROUP_DIGITS as u32));
        for _ in 0..GROUP_DIGITS {
            text.push(b'0' + (digits % 10) as u8);
            digits /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_shape() {
        let (mut random, mut text) = (Random::new(1), Vec::new());
        c_value(&mut random, &mut text);
        assert_eq!(text.len(), 119);
        assert!(text.split(|byte| *byte == b'-').all(|group| group.len() == 11));
        text.clear();
        pad_value(&mut random, &mut text);
        assert_eq!(text.len(), 59);
    }

    #[test]
    fn every_table_has_its_statements() {
        let ops = ops(3);
        assert_eq!(ops.len(), 27);
        let op = &ops[Statement::Insert.of(2).0];
        assert_eq!((op.table, &op.access), (2, &Access::Insert));
        assert_eq!(schema(3).tables[2].indexes[0].name, "k_3");
    }
}
