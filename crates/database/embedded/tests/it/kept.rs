//! Values and rows of the model, and what can be said of them without a database.

use iostrata_database::target::{Change, ColumnType, Fold, Table, Value};

/// A value that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    Null,
    Int(i64),
    Text(Vec<u8>),
}

impl Kept {
    pub fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Int(number),
            Value::Text(text) => Self::Text(text.to_vec()),
        }
    }

    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => Value::Int(*number),
            Self::Text(text) => Value::Text(text),
        }
    }
}

pub type Row = Vec<Kept>;

pub fn folded(mut rows: Vec<Row>, fold: Fold) -> Vec<Row> {
    match fold {
        Fold::Rows => {}
        Fold::Sum => {
            let numbers = rows.iter().filter_map(|row| match row[0] {
                Kept::Int(number) => Some(number),
                _ => None,
            });
            let sum = numbers.reduce(|a, b| a + b);
            rows = vec![vec![Kept::Int(sum.unwrap_or(0))]];
        }
        Fold::Sorted => rows.sort(),
        Fold::Distinct => {
            rows.sort();
            rows.dedup();
        }
    }
    rows
}

pub fn is_within(place: &[Kept], (prefix, is_range): (usize, bool), args: &[Kept]) -> bool {
    if args.contains(&Kept::Null) || place[..prefix] != args[..prefix] {
        return false;
    }
    let next = || &place[prefix];
    !is_range || (*next() != Kept::Null && (&args[prefix]..=&args[prefix + 1]).contains(&next()))
}

pub fn wanted(row: &Row, columns: &[usize]) -> Row {
    columns.iter().map(|column| row[*column].clone()).collect()
}

/// What a column holds at least and at most, where arguments go beyond that.
pub fn ends(of: ColumnType) -> (Kept, Kept) {
    match of {
        ColumnType::Int { bytes: 1 } => (Kept::Int(-128), Kept::Int(127)),
        _ => (Kept::Int(i64::MIN), Kept::Text(vec![0xff; 8])),
    }
}

/// Whether there can be rows with these values in these columns.
pub fn can_be(table: &Table, columns: &[usize], values: &[Kept]) -> bool {
    columns.iter().zip(values).all(|(column, value)| {
        let (least, most) = ends(table.columns[*column].of);
        *value != Kept::Null && (&least..=&most).contains(&value)
    })
}

/// Whether there can be rows within bounds.
pub fn can_hold(
    table: &Table,
    by: &[usize],
    (prefix, is_range): (usize, bool),
    args: &[Kept],
) -> bool {
    if !can_be(table, by, &args[..prefix]) {
        return false;
    }
    let [least, most] = &args[prefix..prefix + 2 * usize::from(is_range)] else { return true };
    let (first, last) = ends(table.columns[by[prefix]].of);
    let is_null = *least == Kept::Null || *most == Kept::Null;
    !is_null && least <= most && *least <= last && *most >= first
}

/// A row as it is kept: nobody sees the blanks at the end of a padded column.
pub fn stored(table: &Table, mut row: Row) -> Row {
    for (cell, column) in row.iter_mut().zip(&table.columns) {
        if let (Kept::Text(text), ColumnType::Char(_)) = (cell, column.of) {
            while text.last() == Some(&b' ') {
                text.pop();
            }
        }
    }
    row
}

pub fn after(change: Change, before: &Kept, argument: &Kept) -> Kept {
    match (change, before, argument) {
        (Change::Set, _, argument) => argument.clone(),
        (_, Kept::Null, _) => Kept::Null,
        (Change::Prepend { .. }, before, Kept::Null) => before.clone(),
        (Change::Prepend { most }, Kept::Text(before), Kept::Text(argument)) => {
            let mut all = [&argument[..], before].concat();
            all.truncate(most.into());
            Kept::Text(all)
        }
        (_, _, Kept::Null) => Kept::Null,
        (change, Kept::Int(before), Kept::Int(argument)) => {
            Kept::Int(change.number(*before, *argument).unwrap())
        }
        (change, before, argument) => panic!("{change:?} of {before:?} by {argument:?}"),
    }
}
