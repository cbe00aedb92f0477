//! Statements that make and remove tables.
//!
//! Characters are kept in the character set and compared in the collation of the database, as with
//! any other client of the server.

use iostrata_database::target::{ADDED_KEY, ColumnType, Index, Schema, Table, TableWords};

use super::name;

/// How a table is made, apart from its schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableOptions<'a> {
    /// The storage engine; the server's own choice without one.
    pub engine: Option<&'a str>,
    pub words: &'a TableWords,
    /// Whether a table without a key gets one.
    pub adds_key: bool,
}

/// Makes a table with its key and with all indexes but the late ones.
pub(crate) fn create(table: &Table, making: TableOptions<'_>) -> String {
    let words = making.words;
    let counted = table.key.first().filter(|_| table.auto_increment);
    let columns = table.columns.iter().enumerate().map(|(at, column)| {
        let nothing = if column.is_nullable { " NULL" } else { " NOT NULL" };
        let counts = if counted == Some(&at) { " AUTO_INCREMENT" } else { "" };
        format!("{} {}{nothing}{counts}", name(&column.name), type_of(column.of))
    });
    let kind = if words.key_is_secondary { "KEY `xid`" } else { "PRIMARY KEY" };
    let key = (!table.key.is_empty()).then(|| format!("{kind} {}", list(table, &table.key)));
    let added = making.adds_key && table.key.is_empty();
    let added =
        added.then(|| format!("{} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", name(ADDED_KEY)));
    let indexes = table.indexes.iter().filter(|index| !index.is_late);
    let indexes = indexes.map(|index| index_of(table, index));
    let parts: Vec<String> = columns.chain(added).chain(key).chain(indexes).collect();
    let engine = making.engine.map_or(String::new(), |engine| format!(" ENGINE = {engine}"));
    let options = match words.options.trim() {
        "" => String::new(),
        options => format!(" {options}"),
    };
    format!("CREATE TABLE {} ({}){engine}{options}", name(&table.name), parts.join(", "))
}

/// Removes a table, if it is there.
pub(crate) fn drop_table(schema: &Schema, table: usize) -> String {
    format!("DROP TABLE IF EXISTS {}", name(&schema.tables[table].name))
}

/// Makes the late indexes that are not there yet, in one go. `None` without one.
pub(crate) fn late_indexes(table: &Table, there: &[String]) -> Option<String> {
    let is_there = |index: &Index| there.iter().any(|name| name.eq_ignore_ascii_case(&index.name));
    let missing = table.indexes.iter().filter(|index| index.is_late && !is_there(index));
    let parts: Vec<String> =
        missing.map(|index| format!("ADD {}", index_of(table, index))).collect();
    (!parts.is_empty()).then(|| format!("ALTER TABLE {} {}", name(&table.name), parts.join(", ")))
}

fn index_of(table: &Table, index: &Index) -> String {
    format!("KEY {} {}", name(&index.name), list(table, &index.columns))
}

fn list(table: &Table, columns: &[usize]) -> String {
    let names: Vec<String> =
        columns.iter().map(|column| name(&table.columns[*column].name)).collect();
    format!("({})", names.join(", "))
}

fn type_of(of: ColumnType) -> String {
    match of {
        ColumnType::Int { bytes: 1 } => "TINYINT".to_owned(),
        ColumnType::Int { bytes: 2 } => "SMALLINT".to_owned(),
        ColumnType::Int { bytes: 3 | 4 } => "INT".to_owned(),
        ColumnType::Int { .. } => "BIGINT".to_owned(),
        ColumnType::Decimal { digits, scale } => format!("DECIMAL({digits}, {scale})"),
        ColumnType::Char(most) => format!("CHAR({most})"),
        ColumnType::Varchar(most) => format!("VARCHAR({most})"),
        ColumnType::LongText => "TEXT".to_owned(),
        ColumnType::DateTime => "DATETIME".to_owned(),
    }
}
