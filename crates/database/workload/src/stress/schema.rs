//! The tables.

use iostrata_database::target::{Column, ColumnType, Schema, Table};

use crate::loaded_mark::mark_table;

/// Rows of the small tables.
pub(super) const ZONES: i64 = 10;
pub(super) const SECTIONS: i64 = 100;
pub(super) const STATUSES: i64 = 1_000;

/// The table of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableId {
    Zones,
    Sections,
    Statuses,
    Objects,
    History,
}

impl TableId {
    pub const ALL: [Self; 5] =
        [Self::Zones, Self::Sections, Self::Statuses, Self::Objects, Self::History];

    pub fn number(self) -> usize {
        self as usize
    }
}

/// The five tables, and one that says what was loaded.
pub fn schema() -> Schema {
    let int = ColumnType::Int { bytes: 4 };
    let (name, note) = (ColumnType::Char(20), ColumnType::Varchar(100));
    let table = |name: &str, key: &[usize], columns: &[(&str, ColumnType)]| Table {
        name: name.to_owned(),
        columns: columns
            .iter()
            .map(|(name, of)| Column { name: (*name).to_owned(), of: *of, is_nullable: false })
            .collect(),
        key: key.to_vec(),
        indexes: Vec::new(),
        auto_increment: false,
    };
    let objects = [
        ("o_id", int),
        ("o_section", int),
        ("o_status", int),
        // The number of its latest history row.
        ("o_last", int),
        // The sum over its history rows.
        ("o_total", ColumnType::Int { bytes: 8 }),
        ("o_name", name),
        ("o_note", note),
    ];
    let history = [
        ("h_object", int),
        ("h_number", int),
        ("h_status", int),
        ("h_amount", int),
        ("h_at", ColumnType::DateTime),
        ("h_note", note),
    ];
    Schema {
        tables: vec![
            table("stress_zones", &[0], &[("z_id", int), ("z_name", name)]),
            table("stress_sections", &[0], &[("s_id", int), ("s_zone", int), ("s_name", name)]),
            table("stress_statuses", &[0], &[("t_id", int), ("t_name", name)]),
            table("stress_objects", &[0], &objects),
            table("stress_history", &[0, 1], &history),
            mark_table("iostrata_stress", &["objects", "history"]),
        ],
    }
}
