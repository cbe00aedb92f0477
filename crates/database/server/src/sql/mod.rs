//! Declared operations as the text of statements.
//!
//! Purpose: what is sent, and which argument stands at which question mark. Invariant: pure, and
//! the same text for prepared statements and for literals. What a session does with them in which
//! order is [`crate::session`]'s.

mod modify;
mod read;
mod table;

use std::fmt::Write as _;

use iostrata_database::target::{Schema, Table};

use crate::kind::ValueKind;

pub(crate) use modify::{Expressions, absolute, before, update};
pub(crate) use modify::{delete, insert};
pub(crate) use read::{count_below, get, scan};
pub(crate) use table::{TableOptions, create, drop_table, late_indexes};

/// The text of a statement and what belongs at its question marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    /// With a question mark for each value.
    pub text: String,
    /// Which of the arguments, and what it is.
    pub takes: Vec<(usize, ValueKind)>,
}

/// An identifier in backticks.
pub(crate) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Writes a statement about one table.
struct SqlText<'a> {
    table: &'a Table,
    text: String,
    takes: Vec<(usize, ValueKind)>,
}

impl<'a> SqlText<'a> {
    fn new(schema: &'a Schema, table: usize, begin: &str) -> Self {
        Self { table: &schema.tables[table], text: begin.to_owned(), takes: Vec::new() }
    }

    fn finish(self) -> Template {
        Template { text: self.text, takes: self.takes }
    }

    fn kind(&self, column: usize) -> ValueKind {
        self.table.columns[column].of.into()
    }

    fn add(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    fn name(&mut self, text: &str) -> &mut Self {
        self.text.push_str(&name(text));
        self
    }

    fn column(&mut self, column: usize) -> &mut Self {
        let table = self.table;
        self.name(&table.columns[column].name)
    }

    /// The columns with something between them.
    fn columns(&mut self, columns: &[usize], behind: &str) -> &mut Self {
        for (at, column) in columns.iter().enumerate() {
            self.add(if at == 0 { "" } else { ", " }).column(*column).add(behind);
        }
        self
    }

    fn table_name(&mut self) -> &mut Self {
        let table = self.table;
        self.name(&table.name)
    }

    /// A question mark for an argument that is compared with a column or stored into it.
    fn argument(&mut self, at: usize, column: usize) -> &mut Self {
        let kind = self.kind(column);
        self.takes.push((at, kind));
        self.add("?")
    }

    /// A question mark with the column's type, also where the server cannot infer it.
    fn typed(&mut self, at: usize, column: usize) -> &mut Self {
        use iostrata_database::target::ColumnType::{
            Char, DateTime, Decimal, Int, LongText, Varchar,
        };
        self.add("CAST(").argument(at, column);
        // Writing to memory does not fail.
        let _ = match self.table.columns[column].of {
            Int { .. } => write!(self.text, " AS SIGNED)"),
            Decimal { digits, scale } => write!(self.text, " AS DECIMAL({digits}, {scale}))"),
            Char(most) | Varchar(most) => write!(self.text, " AS CHAR({most}))"),
            LongText => write!(self.text, " AS CHAR)"),
            DateTime => write!(self.text, " AS DATETIME)"),
        };
        self
    }

    /// `WHERE`, and that these columns equal the arguments of one row or of one of several rows,
    /// which begin at multiples of `stride`.
    fn matching(&mut self, columns: &[usize], rows: usize, stride: usize) -> &mut Self {
        self.add(" WHERE ");
        if let ([column], true) = (columns, rows > 1) {
            self.column(*column).add(" IN (");
            for row in 0..rows {
                self.add(if row == 0 { "" } else { ", " }).argument(row * stride, *column);
            }
            return self.add(")");
        }
        for row in 0..rows {
            let (open, close) = if rows > 1 { ("(", ")") } else { ("", "") };
            self.add(if row == 0 { "" } else { " OR " }).add(open);
            for (at, column) in columns.iter().enumerate() {
                self.add(if at == 0 { "" } else { " AND " }).column(*column);
                self.add(" = ").argument(row * stride + at, *column);
            }
            self.add(close);
        }
        self
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
