//! Declared operations as statements of SQLite.
//!
//! Invariant: pure text. A statement runs once for each row of arguments, which are numbered in it,
//! so that one argument may stand in it more than once. Amounts are whole numbers, moments seconds.

use iostrata_database::target::{
    Access, Assign, Change, Fold, Index, JoinBelow, Op, Order, Schema, Table,
};

/// The statements of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statements {
    /// What the operation is called.
    pub name: &'static str,
    /// Arguments of each row.
    pub stride: usize,
    /// Values of each row that it gives.
    pub width: usize,
    /// Reads rows, with the first so many arguments.
    pub read: Option<(String, usize)>,
    /// Changes rows, with all arguments; after reading.
    pub write: Option<String>,
    /// Whether a row that is named twice is given once.
    pub is_distinct: bool,
    /// Whether it needs the lock of writers.
    pub locks: bool,
}

impl Statements {
    /// Compiles an operation.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn of(schema: &Schema, op: &Op) -> Result<Self, String> {
        let table = schema.tables.get(op.table);
        let table = table.ok_or_else(|| format!("there is no table {}", op.table))?;
        let key = &table.key;
        let base = Self { name: op.name, width: op.width(), ..Self::default() };
        let read = |text, takes| Some((text, takes));
        Ok(match &op.access {
            Access::Get { columns, locks } => Self {
                stride: key.len(),
                read: read(select(table, columns, &matching(table, key), ""), key.len()),
                is_distinct: true,
                locks: *locks,
                ..base
            },
            Access::Scan { prefix, is_range, locks, .. } => {
                let takes = prefix + 2 * usize::from(*is_range);
                let text = scan(table, &op.access);
                Self { stride: takes, read: read(text, takes), locks: *locks, ..base }
            }
            Access::Insert => {
                let columns: Vec<usize> = (0..table.columns.len()).collect();
                let marks: Vec<String> = columns.iter().map(|at| argument(*at)).collect();
                let text = format!(
                    "INSERT INTO {} ({}) VALUES ({})",
                    quoted(&table.name),
                    listed(table, &columns, ""),
                    marks.join(", ")
                );
                Self { stride: columns.len(), write: Some(text), locks: true, ..base }
            }
            Access::Modify { prefix, set, returns } => {
                let wanted = matching(table, &key[..*prefix]);
                let taken = set.iter().filter(|assign| assign.change.takes_argument()).count();
                let behind = format!(" ORDER BY {}", listed(table, key, ""));
                let before = || (select(table, returns, &wanted, &behind), *prefix);
                Self {
                    stride: prefix + taken,
                    read: (!returns.is_empty()).then(before),
                    write: Some(update(table, *prefix, set, &wanted)),
                    locks: true,
                    ..base
                }
            }
            Access::Delete => {
                let text = format!("DELETE FROM {}{}", quoted(&table.name), matching(table, key));
                Self { stride: key.len(), write: Some(text), locks: true, ..base }
            }
            Access::CountBelow(join) => {
                let takes = join.prefix + 3;
                Self { stride: takes, read: read(count(schema, table, join), takes), ..base }
            }
            Access::Statement { .. } => return Err("it is a statement for servers".to_owned()),
        })
    }
}

/// Makes a table: its rows in the order of its key, if it has one.
pub(super) fn create(table: &Table) -> String {
    let counts = table.auto_increment && table.key.len() == 1;
    let columns = table.columns.iter().enumerate().map(|(at, column)| {
        let of = if column.of.is_text() { "TEXT" } else { "INTEGER" };
        let rest = match (counts && table.key == [at], column.is_nullable) {
            (true, _) => " PRIMARY KEY",
            (false, true) => "",
            (false, false) => " NOT NULL",
        };
        format!("{} {of}{rest}", quoted(&column.name))
    });
    let mut parts: Vec<String> = columns.collect();
    let is_ordered = !table.key.is_empty() && !counts;
    if is_ordered {
        parts.push(format!("PRIMARY KEY ({})", listed(table, &table.key, "")));
    }
    let order = if is_ordered { " WITHOUT ROWID" } else { "" };
    format!("CREATE TABLE {} ({}){order}", quoted(&table.name), parts.join(", "))
}

/// Makes an index, if it is not there.
pub(super) fn create_index(table: &Table, index: &Index) -> String {
    format!(
        "CREATE INDEX IF NOT EXISTS {} ON {} ({})",
        quoted(&format!("{}_{}", table.name, index.name)),
        quoted(&table.name),
        listed(table, &index.columns, "")
    )
}

/// A name in quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn argument(at: usize) -> String {
    format!("?{}", at + 1)
}

fn column(table: &Table, column: usize) -> String {
    quoted(&table.columns[column].name)
}

fn listed(table: &Table, columns: &[usize], behind: &str) -> String {
    let names: Vec<String> =
        columns.iter().map(|at| format!("{}{behind}", column(table, *at))).collect();
    names.join(", ")
}

/// ` WHERE` these columns equal the first arguments.
fn matching(table: &Table, columns: &[usize]) -> String {
    let equal = |(at, of): (usize, &usize)| format!("{} = {}", column(table, *of), argument(at));
    let all: Vec<String> = columns.iter().enumerate().map(equal).collect();
    if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
}

fn select(table: &Table, columns: &[usize], wanted: &str, behind: &str) -> String {
    let columns = if columns.is_empty() { "1".to_owned() } else { listed(table, columns, "") };
    format!("SELECT {columns} FROM {}{wanted}{behind}", quoted(&table.name))
}

/// A scan; what is folded is limited before. Any other access is none, and has no text.
fn scan(table: &Table, access: &Access) -> String {
    let Access::Scan { index, prefix, is_range, order, limit, columns, fold, .. } = access else {
        return String::new();
    };
    let mut by = index.map_or_else(Vec::new, |index| table.indexes[index].columns.clone());
    by.extend(table.key.iter().filter(|column| !by.contains(column)).copied().collect::<Vec<_>>());
    let mut wanted = matching(table, &by[..*prefix]);
    if *is_range {
        let and = if *prefix > 0 { "AND" } else { "WHERE" };
        let (least, most) = (argument(*prefix), argument(prefix + 1));
        let of = column(table, by[*prefix]);
        wanted += &format!(" {and} {of} BETWEEN {least} AND {most}");
    }
    let direction = if *order == Order::Descending { " DESC" } else { "" };
    let mut behind = String::new();
    if *order != Order::Any && !by.is_empty() && (*fold == Fold::Rows || limit.is_some()) {
        behind += &format!(" ORDER BY {}", listed(table, &by, direction));
    }
    if let Some(limit) = limit {
        behind += &format!(" LIMIT {limit}");
    }
    let rows = select(table, columns, &wanted, &behind);
    let of = listed(table, columns, "");
    match fold {
        Fold::Rows => rows,
        Fold::Sum => format!("SELECT SUM({of}) FROM ({rows})"),
        Fold::Sorted => format!("SELECT {of} FROM ({rows}) ORDER BY {of}"),
        Fold::Distinct => format!("SELECT DISTINCT {of} FROM ({rows}) ORDER BY {of}"),
    }
}

fn update(table: &Table, prefix: usize, set: &[Assign], wanted: &str) -> String {
    let mut next = prefix;
    let changes: Vec<String> = set
        .iter()
        .map(|assign| {
            let (of, given) = (column(table, assign.column), argument(next));
            next += usize::from(assign.change.takes_argument());
            let after = match assign.change {
                Change::Set => given,
                Change::Add => format!("{of} + {given}"),
                Change::AddConst(number) => format!("{of} + {number}"),
                Change::SubtractRefill { least, by } => {
                    format!(
                        "{of} - {given} + CASE WHEN {of} - {given} < {least} THEN {by} ELSE 0 END"
                    )
                }
                // A null argument makes the whole null, which leaves what was there.
                Change::Prepend { most } => {
                    format!("COALESCE(SUBSTR({given} || {of}, 1, {most}), {of})")
                }
            };
            format!("{of} = {after}")
        })
        .collect();
    format!("UPDATE {} SET {}{wanted}", quoted(&table.name), changes.join(", "))
}

/// Counts distinct rows of the other table; `CROSS JOIN` keeps the order of the two.
fn count(schema: &Schema, table: &Table, join: &JoinBelow) -> String {
    let other = &schema.tables[join.other];
    let pairs = other.key.iter().zip(&join.leads_by);
    let equal =
        pairs.map(|(key, by)| format!("o.{} = t.{}", column(other, *key), column(table, *by)));
    let equal: Vec<String> = equal.collect();
    let fixed = table.key[..join.prefix].iter().enumerate();
    let fixed: String =
        fixed.map(|(at, of)| format!("t.{} = {} AND ", column(table, *of), argument(at))).collect();
    let keys: Vec<String> =
        other.key.iter().map(|key| format!("o.{}", column(other, *key))).collect();
    format!(
        "SELECT COUNT(*) FROM (SELECT DISTINCT {} FROM {} AS t CROSS JOIN {} AS o ON {} \
         WHERE {fixed}t.{} BETWEEN {} AND {} AND o.{} < {})",
        keys.join(", "),
        quoted(&table.name),
        quoted(&other.name),
        equal.join(" AND "),
        column(table, table.key[join.prefix]),
        argument(join.prefix),
        argument(join.prefix + 1),
        column(other, join.tested),
        argument(join.prefix + 2)
    )
}
