//! Operations as a workload declares them: SQL prepares them, the engine compiles them.

use crate::target::schema::ColumnType;

/// The number of an operation in the list that a session was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(pub usize);

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What it is called in messages.
    pub name: &'static str,
    /// On which table, a number of the schema's.
    pub table: usize,
    /// What it does.
    pub access: Access,
}

/// What an operation does. Columns are numbers of the table's columns; "the key" is the table's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The existing rows with these keys, in any order; a row once, however often its key is named.
    /// Arguments: one key per row of arguments.
    Get {
        /// What is wanted of each row.
        columns: Vec<usize>,
        /// Whether the rows are locked until the transaction ends, and read as they are now.
        locks: bool,
    },
    /// Rows in order. Arguments: the first `prefix` values of the order; with `is_range` the least
    /// and the greatest value of the column after them.
    Scan {
        /// The index whose order is meant; the key's without one.
        index: Option<usize>,
        /// So many values of the order are given.
        prefix: usize,
        /// Whether the value after them is within bounds, both included.
        is_range: bool,
        /// From the least or from the greatest.
        order: Order,
        /// At most so many rows.
        limit: Option<u32>,
        /// Whether the rows are locked until the transaction ends, and read as they are now.
        locks: bool,
        /// What is wanted of each row.
        columns: Vec<usize>,
        /// What becomes of the rows.
        fold: Fold,
    },
    /// New rows. Arguments: all columns of each row; a key that a server counts up is left out by
    /// [`crate::target::Value::Null`].
    Insert,
    /// Changes the rows whose keys begin with these values. Arguments of each row: the first
    /// `prefix` values of the key, then one for each change that takes one. Rows named twice are
    /// changed twice. A row that is not there is left out.
    Modify {
        /// So many values of the key are given.
        prefix: usize,
        /// What changes.
        set: Vec<Assign>,
        /// What is wanted of each row as it was before; the rows are locked and read as they are
        /// now. Rows come in the order of the arguments, and of the key below.
        returns: Vec<usize>,
    },
    /// Removes the rows with these keys. Arguments: one key per row of arguments.
    Delete,
    /// Counts, over the rows of a scan (arguments as there, with a range), the distinct rows of
    /// another table that they lead to and of which a column is below the last argument. Gives one
    /// number.
    CountBelow(JoinBelow),
    /// A statement of SQL as it is, with `?` for each argument; not prepared. Only servers know
    /// it.
    Statement {
        /// Its text.
        sql: String,
        /// The types of what it gives.
        gives: Vec<ColumnType>,
    },
}

/// In which direction rows come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the least.
    #[default]
    Ascending,
    /// From the greatest.
    Descending,
    /// As they come.
    Any,
}

/// What becomes of the rows of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// They are given as they are.
    #[default]
    Rows,
    /// The only wanted column is summed up: one row with the sum, 0 without any row.
    Sum,
    /// They are ordered by the only wanted column.
    Sorted,
    /// The distinct values of the only wanted column, ordered.
    Distinct,
}

/// See [`Access::CountBelow`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinBelow {
    /// So many values of the scanned table's key are given; bounds of the next one follow.
    pub prefix: usize,
    /// The other table.
    pub other: usize,
    /// Its key, as columns of the scanned table.
    pub leads_by: Vec<usize>,
    /// The column of the other table that is compared with the last argument.
    pub tested: usize,
}

/// One column that a modification changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assign {
    /// Which.
    pub column: usize,
    /// How.
    pub change: Change,
}

/// How a column changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Becomes the argument.
    Set,
    /// The argument is added.
    Add,
    /// This number is added; takes no argument.
    AddConst(i64),
    /// The argument is subtracted; what would be left with less than `least` is filled up by `by`.
    SubtractRefill {
        /// Least that may be left.
        least: i64,
        /// What is added then.
        by: i64,
    },
    /// The argument, then what was there before, cut at so many characters; a null argument
    /// leaves it as it is.
    Prepend {
        /// Most characters.
        most: u16,
    },
}

impl Change {
    /// Whether it takes an argument.
    pub fn takes_argument(self) -> bool {
        !matches!(self, Self::AddConst(_))
    }

    /// A number after the change. `None` for a change of characters.
    pub fn number(self, before: i64, argument: i64) -> Option<i64> {
        match self {
            Self::Set => Some(argument),
            Self::Add => Some(before + argument),
            Self::AddConst(number) => Some(before + number),
            Self::SubtractRefill { least, by } => {
                let left = before - argument;
                Some(if left < least { left + by } else { left })
            }
            Self::Prepend { .. } => None,
        }
    }
}

impl Op {
    /// Values in each row that it gives; 0 for one that gives none.
    pub fn width(&self) -> usize {
        match &self.access {
            Access::Get { columns, .. } | Access::Scan { columns, .. } => columns.len(),
            Access::Modify { returns, .. } => returns.len(),
            Access::Statement { gives, .. } => gives.len(),
            Access::CountBelow(_) => 1,
            Access::Insert | Access::Delete => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_refilled_as_tpc_c_has_it() {
        let take = Change::SubtractRefill { least: 10, by: 91 };
        for (before, wanted, after) in [(20, 10, 10), (19, 10, 100), (100, 1, 99), (10, 1, 100)] {
            assert_eq!(take.number(before, wanted), Some(after), "{before} - {wanted}");
        }
        assert_eq!(Change::AddConst(1).number(3000, 0), Some(3001));
        assert!(Change::Set.takes_argument() && !Change::AddConst(1).takes_argument());
        assert_eq!(Change::Prepend { most: 500 }.number(1, 1), None);
    }
}
