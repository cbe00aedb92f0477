//! Where the columns of a table stand in the keys and values of its rows, and how a row is changed
//! in its place.
//!
//! A value is: one bit for each column that may hold nothing and is not of the key, then numbers
//! and padded characters at places that never change, then the lengths of the other characters,
//! then these. Columns of the key stand in the key alone. Invariant: what is encoded is read back;
//! changing a number changes no other byte. A damaged row is noticed, never believed.

use iostrata_database::target::{Change, ColumnType, Table, Value};

use crate::key::{
    KeyField, ValueError, bytes_of_characters, characters, number_bytes, number_range,
    without_padding,
};

/// Bytes of the length of characters.
const LENGTH_BYTES: usize = 2;

/// The bit that marks a column as NULL; the mask is 0 where it is NOT NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullBit {
    at: usize,
    mask: u8,
}

impl NullBit {
    /// Whether the column is NULL.
    #[inline]
    pub fn is_set(self, row: &[u8]) -> bool {
        self.mask != 0 && row.get(self.at).is_some_and(|byte| byte & self.mask != 0)
    }

    /// Whether the column may hold nothing.
    pub fn is_allowed(self) -> bool {
        self.mask != 0
    }

    /// Marks the column as NULL or not.
    pub fn set(self, row: &mut [u8], is_null: bool) {
        if let Some(byte) = row.get_mut(self.at).filter(|_| self.mask != 0) {
            *byte = if is_null { *byte | self.mask } else { *byte & !self.mask };
        }
    }
}

/// Where a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Place {
    /// In the key: the how manieth of its columns.
    Key { nth: usize },
    /// A number, from its lowest byte on.
    Number { at: usize, bytes: u8, null: NullBit },
    /// Characters filled up with blanks.
    Padded { at: usize, len: usize, null: NullBit },
    /// The how manieth characters of their own length; at most so many.
    Varying { nth: usize, most: usize, null: NullBit },
}

/// A column of a key for which values are given.
#[derive(Clone, Copy, Debug)]
pub struct PathField {
    /// How it stands in the key.
    pub field: KeyField,
    /// Which column it is.
    pub column: usize,
}

/// The layout of one table's rows.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The table as it is declared.
    pub table: Table,
    /// The columns of the key; none for rows that are identified by a hidden number.
    pub key: Vec<KeyField>,
    /// For each column where it stands.
    pub places: Vec<Place>,
    /// Bytes before the lengths.
    fixed: usize,
    varying: usize,
}

impl Layout {
    /// The layout of a table.
    pub fn new(table: &Table) -> Self {
        let is_value = |column: &usize| !table.key.contains(column);
        let columns = || (0..table.columns.len()).filter(is_value);
        let nullable = columns().filter(|column| table.columns[*column].is_nullable).count();
        let (mut fixed, mut bits, mut varying) = (nullable.div_ceil(8), 0, 0);
        let mut place = |column: usize| {
            if let Some(nth) = table.key.iter().position(|of_key| *of_key == column) {
                return Place::Key { nth };
            }
            let mut null = NullBit { at: 0, mask: 0 };
            if table.columns[column].is_nullable {
                null = NullBit { at: bits / 8, mask: 1 << (bits % 8) };
                bits += 1;
            }
            let at = fixed;
            match (table.columns[column].of, number_bytes(table.columns[column].of)) {
                (of @ (ColumnType::Varchar(_) | ColumnType::LongText), _) => {
                    varying += 1;
                    let most = if let ColumnType::Varchar(most) = of { most } else { u16::MAX };
                    Place::Varying { nth: varying - 1, most: most.into(), null }
                }
                (ColumnType::Char(len), _) => {
                    fixed += usize::from(len);
                    Place::Padded { at, len: len.into(), null }
                }
                (_, bytes) => {
                    let bytes = bytes.unwrap_or(8);
                    fixed += usize::from(bytes);
                    Place::Number { at, bytes, null }
                }
            }
        };
        let places = (0..table.columns.len()).map(&mut place).collect();
        let field = |column: &usize| KeyField::new(table.columns[*column].of, false);
        let key = table.key.iter().map(field).collect();
        Self { table: table.clone(), key, places, fixed, varying }
    }

    /// Whether its rows are identified by a hidden number.
    pub fn has_hidden_key(&self) -> bool {
        self.key.is_empty()
    }

    /// What a column is called.
    pub fn column_name(&self, column: usize) -> &str {
        &self.table.columns[column].name
    }

    /// Adds the columns of the key.
    ///
    /// # Errors
    /// A value that does not go into its column.
    #[inline]
    pub fn push_key<'v>(
        &self,
        values: impl Fn(usize) -> Value<'v>,
        key: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        for (field, column) in self.key.iter().zip(&self.table.key) {
            let value = values(*column);
            if let Err(misfit) = field.push(value, key) {
                let range = number_range(number_bytes(self.table.columns[*column].of).unwrap_or(8));
                let name = self.column_name(*column);
                return Err(ValueError::misfit(name, value, misfit, range));
            }
        }
        Ok(())
    }

    /// Replaces `row` by the value of a row.
    ///
    /// # Errors
    /// A value that does not go into its column.
    pub fn encode<'v>(
        &self,
        values: impl Fn(usize) -> Value<'v>,
        row: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        row.clear();
        row.resize(self.fixed + LENGTH_BYTES * self.varying, 0);
        for (column, place) in self.places.iter().enumerate() {
            match *place {
                Place::Key { .. } => {}
                Place::Number { .. } | Place::Padded { .. } => {
                    self.put_fixed(column, values(column), row)?;
                }
                Place::Varying { nth, most, null } => {
                    let value = values(column);
                    null.set(row, value == Value::Null);
                    let text = match value {
                        Value::Null if null.is_allowed() => &[][..],
                        value => self.text(column, value)?,
                    };
                    self.check_characters(column, text, most)?;
                    self.set_length(row, nth, text.len());
                    row.extend_from_slice(text);
                }
            }
        }
        Ok(())
    }

    /// Puts a value at a place that never changes.
    ///
    /// # Errors
    /// A value that does not go into its column.
    pub fn put_fixed(
        &self,
        column: usize,
        value: Value<'_>,
        row: &mut [u8],
    ) -> Result<(), ValueError> {
        match self.places[column] {
            Place::Number { at, bytes, null } => {
                let number = match value {
                    Value::Int(number) => self.check_range(column, number, bytes)?,
                    Value::Null if null.is_allowed() => 0,
                    value => return Err(self.wrong_kind(column, value)),
                };
                null.set(row, value == Value::Null);
                let width = usize::from(bytes);
                row[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
            Place::Padded { at, len, null } => {
                let text = match value {
                    Value::Null if null.is_allowed() => &[][..],
                    value => without_padding(self.text(column, value)?),
                };
                if text.len() > len {
                    return Err(self.too_long(column, len, "bytes", text.len()));
                }
                null.set(row, value == Value::Null);
                row[at..at + text.len()].copy_from_slice(text);
                row[at + text.len()..at + len].fill(b' ');
            }
            Place::Key { .. } | Place::Varying { .. } => {}
        }
        Ok(())
    }

    /// The number, if it fits so many bytes.
    fn check_range(&self, column: usize, number: i64, bytes: u8) -> Result<i64, ValueError> {
        let (least, most) = number_range(bytes);
        match (least..=most).contains(&number) {
            true => Ok(number),
            false => Err(self.beyond(column, number.to_string(), bytes)),
        }
    }

    /// The error of a number that a column of so many bytes does not hold.
    pub fn beyond(&self, column: usize, found: String, bytes: u8) -> ValueError {
        let (least, most) = number_range(bytes);
        ValueError::Range { column: self.column_name(column).to_owned(), found, least, most }
    }

    /// The characters of a value.
    ///
    /// # Errors
    /// A number, or nothing.
    pub fn text<'v>(&self, column: usize, value: Value<'v>) -> Result<&'v [u8], ValueError> {
        match value {
            Value::Text(text) => Ok(text),
            value => Err(self.wrong_kind(column, value)),
        }
    }

    /// Whether a column of their own length holds these characters.
    ///
    /// # Errors
    /// [`ValueError::Long`].
    pub fn check_characters(
        &self,
        column: usize,
        text: &[u8],
        most: usize,
    ) -> Result<(), ValueError> {
        if text.len() > most && characters(text) > most {
            return Err(self.too_long(column, most, "characters", characters(text)));
        }
        let most = usize::from(u16::MAX);
        if text.len() > most {
            Err(self.too_long(column, most, "bytes", text.len()))
        } else {
            Ok(())
        }
    }

    /// The error of a value of the wrong kind.
    pub fn wrong_kind(&self, column: usize, value: Value<'_>) -> ValueError {
        let name = self.column_name(column);
        match value {
            Value::Null => ValueError::Null { column: name.to_owned() },
            value => ValueError::kind(name, self.table.columns[column].of.is_text(), value),
        }
    }

    fn too_long(&self, column: usize, most: usize, unit: &'static str, found: usize) -> ValueError {
        ValueError::Long { column: self.column_name(column).to_owned(), most, unit, found }
    }

    /// Notes how long characters are.
    pub fn set_length(&self, row: &mut [u8], nth: usize, bytes: usize) {
        let at = self.fixed + LENGTH_BYTES * nth;
        row[at..at + LENGTH_BYTES].copy_from_slice(&(bytes as u16).to_le_bytes());
    }

    /// From where to where the characters of a column stand; none in a damaged row.
    #[inline]
    pub fn varying(&self, row: &[u8], nth: usize) -> Option<(usize, usize)> {
        let length = |nth: usize| {
            let at = self.fixed + LENGTH_BYTES * nth;
            let bytes = row.get(at..at + LENGTH_BYTES)?;
            Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
        };
        let mut start = self.fixed + LENGTH_BYTES * self.varying;
        for before in 0..nth {
            start += length(before)?;
        }
        let end = start + length(nth)?;
        (end <= row.len()).then_some((start, end))
    }

    /// A column of a row; none of a damaged one. `text` is memory for characters of the key.
    #[inline]
    pub fn read<'r>(
        &self,
        place: Place,
        (key, row): (&'r [u8], &'r [u8]),
        text: &'r mut Vec<u8>,
    ) -> Option<Value<'r>> {
        match place {
            Place::Key { nth } => self.read_key(nth, key, text),
            Place::Number { null, .. }
            | Place::Padded { null, .. }
            | Place::Varying { null, .. }
                if null.is_set(row) =>
            {
                Some(Value::Null)
            }
            Place::Number { at, bytes, .. } => {
                row.get(at..at + usize::from(bytes)).map(|bytes| Value::Int(number(bytes)))
            }
            Place::Padded { at, len, .. } => {
                row.get(at..at + len).map(|text| Value::Text(without_padding(text)))
            }
            Place::Varying { nth, .. } => {
                let (start, end) = self.varying(row, nth)?;
                Some(Value::Text(&row[start..end]))
            }
        }
    }

    fn read_key<'r>(
        &self,
        nth: usize,
        mut key: &'r [u8],
        text: &'r mut Vec<u8>,
    ) -> Option<Value<'r>> {
        for field in &self.key[..nth] {
            key = match field.width() {
                Some(width) => key.get(width..)?,
                None => {
                    let behind = field.read(key, text)?.1.len();
                    &key[key.len() - behind..]
                }
            };
        }
        self.key[nth].read(key, text).map(|(value, _)| value)
    }

    /// The number in a row, whether or not the column is NULL.
    pub fn number(&self, at: usize, bytes: u8, row: &[u8]) -> Option<i64> {
        row.get(at..at + usize::from(bytes)).map(number)
    }
}

/// A number from its lowest byte on.
#[inline]
fn number(bytes: &[u8]) -> i64 {
    match *bytes {
        [a] => i64::from(a.cast_signed()),
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        _ => {
            let mut wide = [0; 8];
            wide[8 - bytes.len()..].copy_from_slice(bytes);
            i64::from_le_bytes(wide) >> (64 - 8 * bytes.len())
        }
    }
}

// Changes of a row in its place.
//
// Invariant: only the bytes of the changed columns change, so that the redo of a changed number is
// as long as the number; characters that get longer or shorter move those behind them.

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
pub enum ChangeError {
    /// A value that does not go into its column.
    Value(ValueError),
    /// The row is damaged.
    Damaged,
}

impl From<ValueError> for ChangeError {
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
) -> Result<(), ChangeError> {
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
) -> Result<(), ChangeError> {
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
    let before = layout.number(at, bytes, row).ok_or(ChangeError::Damaged)?;
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
) -> Result<(), ChangeError> {
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
) -> Result<(), ChangeError> {
    let Place::Varying { nth, most, null } = layout.places[column] else {
        return Ok(layout.put_fixed(column, argument, row)?);
    };
    let text = match argument {
        Value::Null if null.is_allowed() => &[][..],
        argument => layout.text(column, argument)?,
    };
    layout.check_characters(column, text, most)?;
    let (start, end) = layout.varying(row, nth).ok_or(ChangeError::Damaged)?;
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
) -> Result<(), ChangeError> {
    match layout.places[column] {
        // Nothing stays nothing.
        Place::Padded { null, .. } | Place::Varying { null, .. } if null.is_set(row) => Ok(()),
        Place::Padded { at, len, .. } => {
            let mut all = text.to_vec();
            let old = row.get(at..at + len).ok_or(ChangeError::Damaged)?;
            all.extend_from_slice(crate::key::without_padding(old));
            let cut = bytes_of_characters(&all, kept);
            Ok(layout.put_fixed(column, Value::Text(&all[..cut]), row)?)
        }
        Place::Varying { nth, most, .. } => {
            let (start, end) = layout.varying(row, nth).ok_or(ChangeError::Damaged)?;
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

    fn changed(column: usize, change: Change, argument: Value<'_>) -> Result<String, ChangeError> {
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
            let ChangeError::Value(error) = changed(column, change, argument).unwrap_err() else {
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
            assert!(found.is_ok() || found == Err(ChangeError::Damaged));
        }
    }
}
