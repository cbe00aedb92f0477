//! Changes of a row in its place.
//!
//! Invariant: only the bytes of the changed columns change, so that the redo of a changed number is
//! as long as the number; characters that get longer or shorter move those behind them.

use iostrata_database::target::{Change, Value};

use crate::layout::{Layout, Place};
use crate::values::{ValueError, bytes_of_characters};

/// One column that is changed, and which of the arguments it takes.
#[derive(Clone, Copy, Debug)]
pub struct ColumnChange {
    /// Which column.
    pub column: usize,
    /// How it changes.
    pub change: Change,
    /// Which of the arguments it takes.
    pub argument: Option<usize>,
}

/// Why a row is not changed.
#[derive(Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// A value that does not go into its column.
    Value(ValueError),
    /// The row is damaged.
    Damaged,
}

impl From<ValueError> for NotChanged {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}

/// Changes columns of a row, one after the other. After an error the row is of no use.
///
/// # Errors
/// What does not go into its column; a damaged row.
#[inline]
pub fn change_columns(
    layout: &Layout,
    changes: &[ColumnChange],
    args: &[Value<'_>],
    row: &mut Vec<u8>,
) -> Result<(), NotChanged> {
    for of in changes {
        let argument = of.argument.map_or(Value::Int(0), |at| args[at]);
        match layout.places[of.column] {
            Place::Number { .. } => change_number(layout, of, argument, row)?,
            Place::Padded { .. } | Place::Varying { .. } => {
                change_text(layout, of, argument, row)?;
            }
            Place::Key { .. } => {}
        }
    }
    Ok(())
}

fn change_number(
    layout: &Layout,
    of: &ColumnChange,
    argument: Value<'_>,
    row: &mut [u8],
) -> Result<(), NotChanged> {
    let Place::Number { at, bytes, null } = layout.places[of.column] else { return Ok(()) };
    if of.change == Change::Set {
        return Ok(layout.put_fixed(of.column, argument, row)?);
    }
    // Nothing stays nothing, and becomes of what nothing is added to.
    if null.is_set(row) {
        return Ok(());
    }
    let argument = match argument {
        Value::Int(argument) => argument,
        Value::Null => return Ok(layout.put_fixed(of.column, Value::Null, row)?),
        Value::Text(_) => return Err(layout.wrong_kind(of.column, argument).into()),
    };
    let before = layout.number(at, bytes, row).ok_or(NotChanged::Damaged)?;
    let Some(after) = result(of.change, before, argument) else {
        let found = format!("{before} changed by {argument}");
        return Err(layout.beyond(of.column, found, bytes).into());
    };
    Ok(layout.put_fixed(of.column, Value::Int(after), row)?)
}

/// The number after a change; none when no number is as large.
fn result(change: Change, before: i64, argument: i64) -> Option<i64> {
    match change {
        Change::Add => before.checked_add(argument),
        Change::AddConst(number) => before.checked_add(number),
        Change::SubtractRefill { least, by } => {
            let left = before.checked_sub(argument)?;
            if left < least { left.checked_add(by) } else { Some(left) }
        }
        Change::Set | Change::Prepend { .. } => change.number(before, argument),
    }
}

fn change_text(
    layout: &Layout,
    of: &ColumnChange,
    argument: Value<'_>,
    row: &mut Vec<u8>,
) -> Result<(), NotChanged> {
    match (of.change, argument) {
        (Change::Set, argument) => set_text(layout, of.column, argument, row),
        (Change::Prepend { .. }, Value::Null) => Ok(()),
        (Change::Prepend { most }, argument) => {
            let text = layout.text(of.column, argument)?;
            prepend(layout, of.column, (text, most.into()), row)
        }
        (_, argument) => Err(layout.wrong_kind(of.column, argument).into()),
    }
}

fn set_text(
    layout: &Layout,
    column: usize,
    argument: Value<'_>,
    row: &mut Vec<u8>,
) -> Result<(), NotChanged> {
    let Place::Varying { nth, most, null } = layout.places[column] else {
        return Ok(layout.put_fixed(column, argument, row)?);
    };
    let text = match argument {
        Value::Null if null.is_allowed() => &[][..],
        argument => layout.text(column, argument)?,
    };
    layout.check_characters(column, text, most)?;
    let (start, end) = layout.varying(row, nth).ok_or(NotChanged::Damaged)?;
    null.set(row, argument == Value::Null);
    row.splice(start..end, text.iter().copied());
    layout.set_length(row, nth, text.len());
    Ok(())
}

/// Puts characters before those that are there, and keeps the first so many.
fn prepend(
    layout: &Layout,
    column: usize,
    (text, kept): (&[u8], usize),
    row: &mut Vec<u8>,
) -> Result<(), NotChanged> {
    match layout.places[column] {
        // Nothing stays nothing.
        Place::Padded { null, .. } | Place::Varying { null, .. } if null.is_set(row) => Ok(()),
        Place::Padded { at, len, .. } => {
            let mut all = text.to_vec();
            let old = row.get(at..at + len).ok_or(NotChanged::Damaged)?;
            all.extend_from_slice(crate::key::without_padding(old));
            let cut = bytes_of_characters(&all, kept);
            Ok(layout.put_fixed(column, Value::Text(&all[..cut]), row)?)
        }
        Place::Varying { nth, most, .. } => {
            let (start, end) = layout.varying(row, nth).ok_or(NotChanged::Damaged)?;
            row.splice(start..start, text.iter().copied());
            let all = &row[start..end + text.len()];
            let cut = bytes_of_characters(all, kept);
            layout.check_characters(column, &all[..cut], most)?;
            row.drain(start + cut..end + text.len());
            layout.set_length(row, nth, cut);
            Ok(())
        }
        Place::Key { .. } | Place::Number { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use iostrata_database::target::{Column, ColumnType, Table};

    use super::*;

    fn layout() -> Layout {
        let column =
            |name: &str, of, is_nullable| Column { name: name.to_owned(), of, is_nullable };
        Layout::new(&Table {
            name: "t".to_owned(),
            columns: vec![
                column("id", ColumnType::Int { bytes: 4 }, false),
                column("n", ColumnType::Int { bytes: 2 }, true),
                column("c", ColumnType::Char(4), true),
                column("v", ColumnType::Varchar(6), true),
                column("w", ColumnType::Varchar(6), false),
                column("big", ColumnType::Int { bytes: 8 }, false),
            ],
            key: vec![0],
            indexes: Vec::new(),
            auto_increment: false,
        })
    }

    fn row(layout: &Layout, values: &[Value<'_>]) -> Vec<u8> {
        let mut row = Vec::new();
        layout.encode(|column| values[column], &mut row).unwrap();
        row
    }

    fn values(layout: &Layout, row: &[u8]) -> String {
        let mut all = Vec::new();
        for place in &layout.places[1..] {
            let mut text = Vec::new();
            all.push(format!("{:?}", layout.read(*place, (&[], row), &mut text).unwrap()));
        }
        all.join(" ")
    }

    const ROW: [Value<'static>; 6] = [
        Value::Int(1),
        Value::Int(-5),
        Value::Text(b"ab"),
        Value::Text(b"xyz"),
        Value::Text(b"end"),
        Value::Int(i64::MAX),
    ];

    fn changed(column: usize, change: Change, argument: Value<'_>) -> Result<String, NotChanged> {
        let layout = layout();
        let mut row = row(&layout, &ROW);
        let of = ColumnChange { column, change, argument: Some(0) };
        change_columns(&layout, &[of], &[argument], &mut row)?;
        Ok(values(&layout, &row))
    }

    #[test]
    fn each_change_touches_its_column_alone() {
        let end = "9223372036854775807";
        let prepend = |most| Change::Prepend { most };
        for (column, change, argument, after) in [
            (1, Change::Set, Value::Int(7), "7 \"ab\" \"xyz\" \"end\""),
            (1, Change::Set, Value::Null, "null \"ab\" \"xyz\" \"end\""),
            (1, Change::Add, Value::Int(-2), "-7 \"ab\" \"xyz\" \"end\""),
            (1, Change::Add, Value::Null, "null \"ab\" \"xyz\" \"end\""),
            (1, Change::AddConst(3), Value::Null, "null \"ab\" \"xyz\" \"end\""),
            (2, Change::Set, Value::Text(b"z  "), "-5 \"z\" \"xyz\" \"end\""),
            (2, prepend(3), Value::Text(b"cd"), "-5 \"cda\" \"xyz\" \"end\""),
            (3, Change::Set, Value::Text(b""), "-5 \"ab\" \"\" \"end\""),
            (3, Change::Set, Value::Text(b"longer"), "-5 \"ab\" \"longer\" \"end\""),
            (3, Change::Set, Value::Null, "-5 \"ab\" null \"end\""),
            (3, prepend(6), Value::Text(b"12"), "-5 \"ab\" \"12xyz\" \"end\""),
            (3, prepend(4), Value::Text(b"12"), "-5 \"ab\" \"12xy\" \"end\""),
            (3, prepend(4), Value::Text(b"123456"), "-5 \"ab\" \"1234\" \"end\""),
            (3, prepend(4), Value::Null, "-5 \"ab\" \"xyz\" \"end\""),
            (4, Change::Set, Value::Text(b"E"), "-5 \"ab\" \"xyz\" \"E\""),
        ] {
            let found = changed(column, change, argument).unwrap();
            assert_eq!(found, format!("{after} {end}"), "{column} {change:?} {argument:?}");
        }
    }

    #[test]
    fn nothing_stays_nothing() {
        let layout = layout();
        let mut nulls = ROW;
        nulls[1..4].fill(Value::Null);
        let mut row = row(&layout, &nulls);
        let add = ColumnChange { column: 1, change: Change::Add, argument: Some(0) };
        let before = Change::Prepend { most: 3 };
        let prepend = ColumnChange { column: 3, change: before, argument: Some(1) };
        let args = [Value::Int(1), Value::Text(b"x")];
        change_columns(&layout, &[add, prepend], &args, &mut row).unwrap();
        assert!(values(&layout, &row).starts_with("null null null \"end\""));
    }

    #[test]
    fn what_does_not_go_into_its_column_is_refused() {
        for (column, change, argument, text) in [
            (1, Change::Set, Value::Int(40_000), "beyond column n"),
            (1, Change::Add, Value::Int(-32_764), "beyond column n"),
            (5, Change::Add, Value::Int(1), "beyond column big"),
            (5, Change::Set, Value::Null, "always holds something"),
            (1, Change::Add, Value::Text(b"1"), "takes a number"),
            (2, Change::Set, Value::Text(b"12345"), "holds 4 bytes"),
            (3, Change::Set, Value::Text(b"1234567"), "holds 6 characters"),
            (3, Change::Prepend { most: 9 }, Value::Text(b"1234"), "holds 6 characters"),
            (3, Change::Add, Value::Int(1), "characters"),
        ] {
            let NotChanged::Value(error) = changed(column, change, argument).unwrap_err() else {
                panic!("the row is not damaged");
            };
            let error = error.to_string();
            let is_named =
                error.contains(text) || text.starts_with("takes") && error.contains("holds");
            assert!(is_named, "{error} for {text}");
        }
    }

    #[test]
    fn a_damaged_row_is_noticed() {
        let layout = layout();
        let whole = row(&layout, &ROW);
        let of = ColumnChange { column: 3, change: Change::Set, argument: Some(0) };
        let args = [Value::Text(b"1")];
        for len in 0..whole.len() {
            let mut cut = whole[..len].to_vec();
            let mut text = Vec::new();
            let _any = layout.read(layout.places[4], (&[], &cut), &mut text);
            let found = change_columns(&layout, &[of], &args, &mut cut);
            assert!(found.is_ok() || found == Err(NotChanged::Damaged));
        }
    }
}
