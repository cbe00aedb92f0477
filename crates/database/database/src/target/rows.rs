//! Rows in a buffer that is used again: what an operation gives, and what a load puts in.

use crate::target::value::Value;

/// A value in the buffer.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Null,
    Int(i64),
    /// From where to where in the bytes.
    Text(u32, u32),
}

/// Rows of the same width, one after the other. Clearing keeps the memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    width: usize,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl Rows {
    /// No rows, each with this many values.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Forgets all rows; those to come have this many values.
    pub fn clear(&mut self, width: usize) {
        self.width = width;
        self.cells.clear();
        self.bytes.clear();
    }

    /// Adds the next value of the last row.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        let cell = match value {
            Value::Null => Cell::Null,
            Value::Int(number) => Cell::Int(number),
            Value::Text(text) => {
                let start = self.bytes.len() as u32;
                self.bytes.extend_from_slice(text);
                Cell::Text(start, self.bytes.len() as u32)
            }
        };
        self.cells.push(cell);
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has another number of values.
    pub fn push_row(&mut self, row: &[Value<'_>]) {
        assert_eq!(row.len(), self.width, "values of a row");
        row.iter().for_each(|value| self.push(*value));
    }

    /// The number of rows.
    ///
    /// # Panics
    /// When the last one is not whole.
    pub fn len(&self) -> usize {
        if self.width == 0 {
            return 0;
        }
        assert!(self.cells.len().is_multiple_of(self.width), "the last row is not whole");
        self.cells.len() / self.width
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Bytes of characters.
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// A value.
    ///
    /// # Panics
    /// When no such row or column exists.
    #[inline]
    #[track_caller]
    pub fn get(&self, row: usize, column: usize) -> Value<'_> {
        assert!(column < self.width, "column {column} of {}", self.width);
        self.value(self.cells[row * self.width + column])
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Value<'_>> {
        self.cells[row * self.width..][..self.width].iter().map(|cell| self.value(*cell))
    }

    /// The row, if any, whose first values are these.
    pub fn find(&self, first: &[i64]) -> Option<usize> {
        let is = |row: usize| {
            first.iter().enumerate().all(|(at, number)| self.get(row, at) == Value::Int(*number))
        };
        (0..self.len()).find(|row| is(*row))
    }

    fn value(&self, cell: Cell) -> Value<'_> {
        match cell {
            Cell::Null => Value::Null,
            Cell::Int(number) => Value::Int(number),
            Cell::Text(start, end) => Value::Text(&self.bytes[start as usize..end as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_as_they_came() {
        let mut rows = Rows::new(2);
        rows.push_row(&[Value::Int(7), "seven".into()]);
        rows.push_row(&[Value::Int(8), Value::Null]);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows.get(0, 0).int(), rows.get(0, 1).text()), (7, &b"seven"[..]));
        assert!(rows.get(1, 1).is_null());
        assert_eq!((rows.find(&[8]), rows.find(&[9])), (Some(1), None));
        assert_eq!(rows.row(1).collect::<Vec<_>>(), [Value::Int(8), Value::Null]);
        rows.clear(1);
        assert!(rows.is_empty());
        rows.push("x".into());
        assert_eq!((rows.len(), rows.text_bytes()), (1, 1));
    }
}
