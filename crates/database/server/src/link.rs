//! One connection in use: statements go out, rows come back, and what it costs is counted.
//!
//! Invariants: a round trip is counted where an answer is waited for, and nowhere else. Nothing is
//! prepared within a transaction. No type of the client library leaves the files that use this one.

use std::sync::Arc;

use iostrata_database::target::{Rows, SessionCost, TargetError, Trouble, Value};
use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, Error, Params, QueryResult, Row};

use crate::failure;
use crate::kind::{self, ValueKind};
use crate::sql::Template;
use crate::wire::{DrainResult, Wire, WireColumn, WireRow};

/// More prepared statements than the server holds; a statement that it cannot prepare.
const NOT_PREPARED: [u16; 2] = [1461, 1295];

/// What takes rows, one after the other; `None` when one is not what was declared.
pub(crate) type Taker<'t> = dyn FnMut(&AnswerRow<'_>) -> Option<()> + 't;

/// A row of an answer.
pub(crate) enum AnswerRow<'a> {
    Library(Row),
    Wire(WireRow<'a>),
}

impl AnswerRow<'_> {
    pub(crate) fn is_null(&self, at: usize) -> bool {
        match self {
            Self::Library(row) => row.as_ref(at) == Some(&mysql::Value::NULL),
            Self::Wire(row) => row.is_null(at),
        }
    }

    /// Adds its values to the rows. `None` when one is not what was declared.
    #[inline]
    pub(crate) fn take(&self, gives: &[ValueKind], out: &mut Rows) -> Option<()> {
        match self {
            Self::Library(row) => gives
                .iter()
                .enumerate()
                .try_for_each(|(at, kind)| kind::take(row.as_ref(at), *kind, out)),
            Self::Wire(row) => row.take(gives, out),
        }
    }
}

/// A statement that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Ready {
    template: Template,
    form: Form,
}

/// How a statement is sent.
#[derive(Debug)]
enum Form {
    Text,
    /// As text until no transaction is open.
    TextForNow,
    /// With the columns of its last answer.
    Prepared(mysql::Statement, Vec<WireColumn>),
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Link {
    conn: Conn,
    /// Executes what is prepared, where that is possible.
    wire: Option<Wire>,
    /// Whether a wire is made when it is first of use: connections come first where few files may
    /// be open.
    wants_wire: bool,
    target: Arc<str>,
    pub cost: SessionCost,
    /// Every statement is a transaction of its own.
    pub autocommit: bool,
    /// Statements have run since the last transaction ended.
    pub is_open: bool,
    /// Statements that are sent as text for now.
    late: usize,
    text: Vec<u8>,
}

impl Link {
    pub(crate) fn new(conn: Conn, target: Arc<str>) -> Self {
        let (cost, text) = (SessionCost::default(), Vec::new());
        Self {
            conn,
            wire: None,
            wants_wire: false,
            target,
            cost,
            autocommit: true,
            is_open: false,
            late: 0,
            text,
        }
    }

    /// The same connection, which is in plain text, for many prepared statements.
    pub(crate) fn plain(self) -> Self {
        Self { wants_wire: true, ..self }
    }

    /// Prepares a statement, or keeps it as text. Within a transaction it is text for now: a node
    /// of a Galera cluster that gives up the transaction while it prepares a statement reports no
    /// error, and what follows would be committed without what came before.
    pub(crate) fn ready(
        &mut self,
        template: Template,
        as_text: bool,
    ) -> Result<Ready, TargetError> {
        let form = if as_text {
            Form::Text
        } else if self.is_open {
            self.late += 1;
            Form::TextForNow
        } else {
            self.prepare(&template.text)?
        };
        Ok(Ready { template, form })
    }

    fn prepare(&mut self, sql: &str) -> Result<Form, TargetError> {
        self.cost.round_trips += 1;
        match self.conn.prep(sql) {
            Ok(statement) => {
                let columns = statement.columns().iter().map(WireColumn::of).collect();
                Ok(Form::Prepared(statement, columns))
            }
            Err(Error::MySqlError(error)) if NOT_PREPARED.contains(&error.code) => Ok(Form::Text),
            Err(error) => Err(self.told(sql, &error)),
        }
    }

    /// Whether statements wait for being prepared.
    pub(crate) fn has_late(&self) -> bool {
        self.late > 0
    }

    /// Prepares a statement that has waited for the end of a transaction.
    pub(crate) fn catch_up(&mut self, ready: &mut Ready) -> Result<(), TargetError> {
        if matches!(ready.form, Form::TextForNow) {
            ready.form = self.prepare(&ready.template.text)?;
            self.late -= 1;
        }
        Ok(())
    }

    /// Runs a statement; gives the rows that it found or changed where it gives no rows.
    pub(crate) fn run(
        &mut self,
        ready: &mut Ready,
        args: &[Value<'_>],
        each: &mut Taker<'_>,
    ) -> Result<u64, TargetError> {
        self.is_open = !self.autocommit;
        if std::mem::take(&mut self.wants_wire) {
            self.wire = Wire::of(&self.conn);
        }
        let takes = &ready.template.takes;
        let is_wired = match (&mut self.wire, &ready.form) {
            (Some(wire), Form::Prepared(statement, _)) => wire.prepare(statement, takes, args),
            _ => false,
        };
        let result = match (&mut ready.form, &mut self.wire) {
            (Form::Prepared(_, columns), Some(wire)) if is_wired => {
                wire.execute(columns, |row| each(&AnswerRow::Wire(row)))
            }
            (Form::Prepared(statement, _), _) => {
                let statement = &*statement;
                let values = takes.iter().map(|(at, kind)| kind::parameter(args[*at], *kind));
                let values: Vec<mysql::Value> = values.collect();
                let params =
                    if values.is_empty() { Params::Empty } else { Params::Positional(values) };
                drain(self.conn.exec_iter(statement, params), each)
            }
            (Form::Text | Form::TextForNow, _) => {
                let mut kinds = takes.iter();
                self.fill(&ready.template.text, |_| {
                    kinds.next().map(|(at, kind)| (args[*at], *kind))
                });
                drain(self.conn.query_iter(String::from_utf8_lossy(&self.text)), each)
            }
        };
        self.counted(result, &ready.template.text)
    }

    /// Runs a text with a literal for each question mark, and numbers as they are.
    pub(crate) fn run_text(
        &mut self,
        sql: &str,
        args: &[Value<'_>],
        each: &mut Taker<'_>,
    ) -> Result<u64, TargetError> {
        self.is_open = !self.autocommit;
        self.fill(sql, |at| args.get(at).map(|value| (*value, ValueKind::Number)));
        let result = drain(self.conn.query_iter(String::from_utf8_lossy(&self.text)), each);
        self.counted(result, sql)
    }

    /// Runs a text that gives no rows.
    pub(crate) fn order(&mut self, sql: &str) -> Result<u64, TargetError> {
        let result = drain(self.conn.query_iter(sql), &mut |_| Some(()));
        self.counted(result, sql)
    }

    /// What the connection is for the rest of this crate.
    pub(crate) fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }

    /// An error for this target.
    pub(crate) fn told(&self, sql: &str, error: &Error) -> TargetError {
        failure::told(&self.target, &shortened(sql), error)
    }

    /// An error of the caller, or of a server that gives what was not declared.
    pub(crate) fn refused(&self, code: &str, text: String) -> TargetError {
        let (code, target) = (code.to_owned(), self.target.to_string());
        TargetError { trouble: Trouble::Failed, code, target, text, fix: None }
    }

    fn counted(
        &mut self,
        result: Result<DrainResult, Error>,
        sql: &str,
    ) -> Result<u64, TargetError> {
        self.cost.round_trips += 1;
        self.cost.statements += 1;
        match result {
            Ok(DrainResult { odd_row: Some(row), .. }) => {
                let text = format!("{}: row {row} is not of the declared types", shortened(sql));
                Err(self.refused("types", text))
            }
            Ok(answer) => Ok(answer.changed),
            Err(error) => Err(self.told(sql, &error)),
        }
    }

    /// Puts the text with its literals into the buffer.
    fn fill<'v>(&mut self, sql: &str, value: impl FnMut(usize) -> Option<(Value<'v>, ValueKind)>) {
        let has_backslash = !self.conn.no_backslash_escape();
        self.text.clear();
        with_literals(sql, has_backslash, value, &mut self.text);
    }
}

fn drain<P: Protocol>(
    result: mysql::Result<QueryResult<'_, '_, '_, P>>,
    each: &mut Taker<'_>,
) -> Result<DrainResult, Error> {
    let result = result?;
    let mut answer = DrainResult { changed: result.affected_rows(), odd_row: None };
    for (at, row) in result.enumerate() {
        if each(&AnswerRow::Library(row?)).is_none() {
            answer.odd_row.get_or_insert(at as u64);
        }
    }
    Ok(answer)
}

/// Writes a text with a literal in place of each question mark outside quotes and comments; the
/// marks that have no value stay.
fn with_literals<'v>(
    sql: &str,
    has_backslash: bool,
    mut value: impl FnMut(usize) -> Option<(Value<'v>, ValueKind)>,
    out: &mut Vec<u8>,
) {
    let bytes = sql.as_bytes();
    let (mut at, mut marks) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => {
                quoted_end(rest, quote, has_backslash && quote != b'`')
            }
            b'#' => line_end(rest),
            b'-' if rest.starts_with(b"-- ") => line_end(rest),
            b'/' if rest.starts_with(b"/*") => rest
                .windows(2)
                .skip(2)
                .position(|pair| pair == b"*/")
                .map_or(rest.len(), |at| at + 4),
            b'?' => {
                match value(marks) {
                    Some((value, kind)) => kind::literal(value, kind, has_backslash, out),
                    None => out.push(b'?'),
                }
                (marks, at) = (marks + 1, at + 1);
                continue;
            }
            _ => 1,
        };
        out.extend_from_slice(&rest[..end]);
        at += end;
    }
}

/// Where a quoted text ends that begins here. A doubled quote begins the next one.
fn quoted_end(text: &[u8], quote: u8, has_backslash: bool) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if has_backslash => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn line_end(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1)
}

/// A statement as messages show it.
fn shortened(sql: &str) -> String {
    const MOST: usize = 120;
    match sql.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &sql[..end]),
        None => sql.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(sql: &str, has_backslash: bool) -> String {
        let mut out = Vec::new();
        let value = |at| (at < 2).then_some((Value::Text(b"a'\\"), ValueKind::Text));
        with_literals(sql, has_backslash, value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn question_marks_in_quotes_and_comments_are_none() {
        let mark = "'a''\\\\'";
        for (sql, expected) in [
            ("x = ?", "x = M"),
            ("'?' ? \"?\" `?`", "'?' M \"?\" `?`"),
            ("'it''s ?' ?", "'it''s ?' M"),
            ("'\\'?' ?", "'\\'?' M"),
            ("? -- ?\n?", "M -- ?\nM"),
            ("/* ? */ ? # ?\n?", "/* ? */ M # ?\nM"),
            ("a - ? /*/ ? */", "a - M /*/ ? */"),
            ("'open ?", "'open ?"),
            ("/* open ?", "/* open ?"),
            ("? ? ?", "M M ?"),
        ] {
            assert_eq!(filled(sql, true), expected.replace('M', mark), "{sql}");
        }
        assert_eq!(filled("'\\' ? '", false), "'\\' 'a''\\' '");
        assert_eq!(filled("'\\", true), "'\\");
    }

    #[test]
    fn long_statements_are_shortened_between_characters() {
        assert_eq!(shortened("SELECT 1"), "SELECT 1");
        let long = "\u{e4}".repeat(200);
        assert_eq!(shortened(&long).chars().count(), 123);
    }
}
