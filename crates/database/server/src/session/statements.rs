//! The statements of one operation: what is sent at which stage, for how many rows, prepared once.

use std::sync::Arc;

use iostrata_database::target::{Access, Fold, Op, Schema, TargetError};

use crate::flavour::Dialect;
use crate::kind::ValueKind;
use crate::link::{Link, Ready};
use crate::sql::{self, Expressions, Template};

/// What a statement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// All of the operation; of a modification its UPDATE by expressions.
    Whole,
    /// The rows before a modification: what is returned.
    Before,
    /// The rows before a modification that is computed here: key, changed columns, returned ones.
    BeforeAll,
    /// New values for many rows.
    Absolute,
}

const STAGES: usize = 4;

/// The statements of one operation.
#[derive(Debug)]
pub(super) struct Statements {
    pub op: Arc<Op>,
    /// Values in each row of arguments.
    pub stride: usize,
    /// What it gives, in order.
    pub gives: Arc<[ValueKind]>,
    /// Gives the sum of its rows.
    pub sums: bool,
    pub schema: Arc<Schema>,
    pub dialect: Dialect,
    as_text: bool,
    /// By stage and number of rows.
    ready: [Vec<Option<Box<Ready>>>; STAGES],
}

impl Statements {
    /// Fails with the part of the operation that no statement can do.
    pub(super) fn new(
        op: &Op,
        schema: &Arc<Schema>,
        dialect: Dialect,
        as_text: bool,
    ) -> Result<Self, String> {
        let stride = stride_of(op, schema)?;
        let gives = gives_of(op, schema).into();
        let sums = super::is_sum(&op.access);
        let (op, schema) = (Arc::new(op.clone()), Arc::clone(schema));
        let ready = [const { Vec::new() }; STAGES];
        Ok(Self { op, stride, gives, sums, schema, dialect, as_text, ready })
    }

    /// The statement for so many rows of arguments.
    #[inline]
    pub(super) fn ready(
        &mut self,
        link: &mut Link,
        stage: Stage,
        rows: usize,
    ) -> Result<&mut Ready, TargetError> {
        let at = stage as usize;
        if self.ready[at].len() <= rows {
            self.ready[at].resize_with(rows + 1, || None);
        }
        if self.ready[at][rows].is_none() {
            let ready = link.ready(self.template(stage, rows), self.as_text)?;
            self.ready[at][rows] = Some(Box::new(ready));
        }
        self.ready[at][rows].as_deref_mut().ok_or_else(|| {
            link.refused("operation", format!("{}: no statement was made", self.op.name))
        })
    }

    /// Prepares what was sent as text within a transaction.
    pub(super) fn catch_up(&mut self, link: &mut Link) -> Result<(), TargetError> {
        let mut all = self.ready.iter_mut().flatten().flatten();
        all.try_for_each(|ready| link.catch_up(ready))
    }

    fn template(&self, stage: Stage, rows: usize) -> Template {
        let (schema, table) = (self.schema.as_ref(), self.op.table);
        match &self.op.access {
            Access::Get { columns, locks } => sql::get(schema, table, columns, *locks, rows),
            access @ Access::Scan { .. } => sql::scan(schema, table, access),
            Access::Insert => sql::insert(schema, table, rows),
            Access::Delete => sql::delete(schema, table, rows),
            Access::CountBelow(join) => sql::count_below(schema, table, join),
            Access::Modify { prefix, set, returns } => {
                let change = Expressions { prefix: *prefix, set };
                let key = &schema.tables[table].key;
                match stage {
                    Stage::Whole => sql::update(schema, table, change, rows),
                    Stage::Before => {
                        let columns = before_columns(&key[..*prefix], &[], returns, rows);
                        sql::before(schema, table, change, &columns, rows)
                    }
                    Stage::BeforeAll => {
                        let changed: Vec<usize> = set.iter().map(|one| one.column).collect();
                        let columns = before_columns(key, &changed, returns, rows.max(2));
                        sql::before(schema, table, change, &columns, rows)
                    }
                    Stage::Absolute => sql::absolute(schema, table, set, rows),
                }
            }
            Access::Statement { sql, .. } => Template { text: sql.clone(), takes: Vec::new() },
        }
    }
}

/// What is read before a modification. One row need not be distinguished from others.
fn before_columns(key: &[usize], changed: &[usize], returns: &[usize], rows: usize) -> Vec<usize> {
    let key = if rows > 1 { key } else { &[] };
    [key, changed, returns].concat()
}

fn stride_of(op: &Op, schema: &Schema) -> Result<usize, String> {
    if matches!(op.access, Access::Statement { .. }) {
        return Ok(0);
    }
    let Some(table) = schema.tables.get(op.table) else {
        return Err(format!("{}: there is no table {}", op.name, op.table));
    };
    let needs_key = matches!(
        op.access,
        Access::Get { .. } | Access::Delete | Access::Modify { .. } | Access::CountBelow(_)
    );
    if needs_key && table.key.is_empty() {
        return Err(format!("{}: table {} has no key", op.name, table.name));
    }
    Ok(match &op.access {
        Access::Get { .. } | Access::Delete => table.key.len(),
        Access::Scan { prefix, is_range, index, columns, fold, .. } => {
            if *fold != Fold::Rows && columns.len() != 1 {
                return Err(format!("{}: {} columns cannot be folded", op.name, columns.len()));
            }
            let order = index.map_or(0, |index| table.indexes[index].columns.len());
            let given = prefix + usize::from(*is_range);
            if given > order + table.key.len() {
                return Err(format!("{}: {given} values of a shorter order", op.name));
            }
            prefix + 2 * usize::from(*is_range)
        }
        Access::Insert => table.columns.len(),
        Access::Modify { prefix, set, .. } => {
            if *prefix == 0 || *prefix > table.key.len() {
                return Err(format!("{}: {prefix} values of the key are no row", op.name));
            }
            Expressions { prefix: *prefix, set }.stride()
        }
        Access::CountBelow(join) => join.prefix + 3,
        Access::Statement { .. } => 0,
    })
}

fn gives_of(op: &Op, schema: &Schema) -> Vec<ValueKind> {
    let kinds = |columns: &[usize]| {
        let columns = columns.iter();
        columns.map(|column| schema.tables[op.table].columns[*column].of.into()).collect()
    };
    match &op.access {
        Access::Get { columns, .. } | Access::Scan { columns, .. } => kinds(columns),
        Access::Modify { returns, .. } => kinds(returns),
        Access::Statement { gives, .. } => gives.iter().map(|of| (*of).into()).collect(),
        Access::CountBelow(_) => vec![ValueKind::Number],
        Access::Insert | Access::Delete => Vec::new(),
    }
}
