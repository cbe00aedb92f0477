//! Tables as a workload declares them.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A whole number of 1, 2, 4 or 8 bytes, with a sign.
    Int {
        /// How wide it is.
        bytes: u8,
    },
    /// An amount with this many digits, so many of them behind the point. Its
    /// [`crate::target::Value`] is a whole number of the smallest unit.
    Decimal {
        /// All digits.
        digits: u8,
        /// Those behind the point.
        scale: u8,
    },
    /// Characters; shorter values are padded with blanks, which a reader never gets.
    Char(u16),
    /// Up to so many characters.
    Varchar(u16),
    /// Characters without such a bound.
    LongText,
    /// A moment, in whole seconds.
    DateTime,
}

impl ColumnType {
    /// Whether its values are characters.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Char(_) | Self::Varchar(_) | Self::LongText)
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub of: ColumnType,
    /// Whether it may hold nothing.
    pub is_nullable: bool,
}

/// A further order of a table's rows, which may hold equal values more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name, unique in its table.
    pub name: String,
    /// The columns by which it orders, numbers of the table's columns.
    pub columns: Vec<usize>,
    /// Made after the table is filled; otherwise with the table.
    pub is_late: bool,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The columns that identify a row, in order; empty when none do. None of them may be NULL.
    pub key: Vec<usize>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Whether a server counts its key up by itself where it is left out.
    pub auto_increment: bool,
}

impl Table {
    /// The number of the column with this name.
    ///
    /// # Panics
    /// When there is none: workloads name the columns that they declare.
    #[track_caller]
    pub fn column(&self, name: &str) -> usize {
        let found = self.columns.iter().position(|column| column.name == name);
        found.unwrap_or_else(|| panic!("table {} has no column {name}", self.name))
    }

    /// The numbers of the columns with these names.
    ///
    /// # Panics
    /// As [`Table::column`].
    #[track_caller]
    pub fn columns_of(&self, names: &[&str]) -> Vec<usize> {
        names.iter().map(|name| self.column(name)).collect()
    }
}

/// All tables of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// In the order in which they are made.
    pub tables: Vec<Table>,
}

impl Schema {
    /// The number of the table with this name.
    ///
    /// # Panics
    /// When there is none: workloads name the tables that they declare.
    #[track_caller]
    pub fn table(&self, name: &str) -> usize {
        let found = self.tables.iter().position(|table| table.name == name);
        found.unwrap_or_else(|| panic!("no table {name} is declared"))
    }
}

/// A user's options for the tables that a server makes, in addition to their schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableWords {
    /// What CREATE TABLE ends with.
    pub options: String,
    /// An index of the key in place of the primary key.
    pub key_is_secondary: bool,
}
