//! Values and rows of the model, and what holds for them without a database.

use iostrata_database::target::{Change, ColumnType, Fold, Table, Value};

/// A value of the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnedValue {
    Null,
    Int(i64),
    Text(Vec<u8>),
}

impl OwnedValue {
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

pub type Row = Vec<OwnedValue>;

pub fn folded(mut rows: Vec<Row>, fold: Fold) -> Vec<Row> {
    match fold {
        Fold::Rows => {}
        Fold::Sum => {
            let numbers = rows.iter().filter_map(|row| match row[0] {
                OwnedValue::Int(number) => Some(number),
                _ => None,
            });
            let sum = numbers.reduce(|a, b| a + b);
            rows = vec![vec![OwnedValue::Int(sum.unwrap_or(0))]];
        }
        Fold::Sorted => rows.sort(),
        Fold::Distinct => {
            rows.sort();
            rows.dedup();
        }
    }
    rows
}

pub fn is_within(
    place: &[OwnedValue],
    (prefix, is_range): (usize, bool),
    args: &[OwnedValue],
) -> bool {
    if args.contains(&OwnedValue::Null) || place[..prefix] != args[..prefix] {
        return false;
    }
    let next = || &place[prefix];
    !is_range
        || (*next() != OwnedValue::Null && (&args[prefix]..=&args[prefix + 1]).contains(&next()))
}

pub fn wanted(row: &Row, columns: &[usize]) -> Row {
    columns.iter().map(|column| row[*column].clone()).collect()
}

/// What a column holds at least and at most, where arguments go beyond that.
pub fn ends(of: ColumnType) -> (OwnedValue, OwnedValue) {
    match of {
        ColumnType::Int { bytes: 1 } => (OwnedValue::Int(-128), OwnedValue::Int(127)),
        _ => (OwnedValue::Int(i64::MIN), OwnedValue::Text(vec![0xff; 8])),
    }
}

/// Whether there can be rows with these values in these columns.
pub fn can_be(table: &Table, columns: &[usize], values: &[OwnedValue]) -> bool {
    columns.iter().zip(values).all(|(column, value)| {
        let (least, most) = ends(table.columns[*column].of);
        *value != OwnedValue::Null && (&least..=&most).contains(&value)
    })
}

/// Whether there can be rows within bounds.
pub fn can_hold(
    table: &Table,
    by: &[usize],
    (prefix, is_range): (usize, bool),
    args: &[OwnedValue],
) -> bool {
    if !can_be(table, by, &args[..prefix]) {
        return false;
    }
    let [least, most] = &args[prefix..prefix + 2 * usize::from(is_range)] else { return true };
    let (first, last) = ends(table.columns[by[prefix]].of);
    let is_null = *least == OwnedValue::Null || *most == OwnedValue::Null;
    !is_null && least <= most && *least <= last && *most >= first
}

/// A row as it is stored: the blanks at the end of a padded column are not seen.
pub fn stored(table: &Table, mut row: Row) -> Row {
    for (cell, column) in row.iter_mut().zip(&table.columns) {
        if let (OwnedValue::Text(text), ColumnType::Char(_)) = (cell, column.of) {
            while text.last() == Some(&b' ') {
                text.pop();
            }
        }
    }
    row
}

pub fn after(change: Change, before: &OwnedValue, argument: &OwnedValue) -> OwnedValue {
    match (change, before, argument) {
        (Change::Set, _, argument) => argument.clone(),
        (_, OwnedValue::Null, _) => OwnedValue::Null,
        (Change::Prepend { .. }, before, OwnedValue::Null) => before.clone(),
        (Change::Prepend { most }, OwnedValue::Text(before), OwnedValue::Text(argument)) => {
            let mut all = [&argument[..], before].concat();
            all.truncate(most.into());
            OwnedValue::Text(all)
        }
        (_, _, OwnedValue::Null) => OwnedValue::Null,
        (change, OwnedValue::Int(before), OwnedValue::Int(argument)) => {
            OwnedValue::Int(change.number(*before, *argument).unwrap())
        }
        (change, before, argument) => panic!("{change:?} of {before:?} by {argument:?}"),
    }
}
