//! What the engine keeps of each table besides its rows: how they are laid out, and whether they
//! are all there.
//!
//! Invariant: a table is used only by the definition that it was made with, and only when it was
//! loaded to its end. The definition is durable before the table is.

use std::fmt::Write as _;

use iostrata_database::target::Table;
use iostrata_engine::{Engine, EngineError};

/// The engine's table of definitions, by the names of tables.
pub(crate) const DEFINITIONS: &str = ".definitions";

const LOADING: &[u8] = b"loading ";
const WHOLE: &[u8] = b"whole ";

/// How a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableState {
    Absent,
    /// There, and laid out otherwise than is declared.
    Other,
    /// A load was begun and did not end.
    Loading,
    Whole,
}

/// Looks how a table is.
///
/// # Errors
/// What reading said.
pub(crate) fn state(engine: &Engine, table: &Table) -> Result<TableState, EngineError> {
    if engine.table(&table.name)?.is_none() {
        return Ok(TableState::Absent);
    }
    let known = engine.table(DEFINITIONS)?.map(|all| all.get(table.name.as_bytes())).transpose()?;
    let Some(known) = known.flatten() else { return Ok(TableState::Other) };
    let text = text(table);
    Ok(match (known.strip_prefix(WHOLE), known.strip_prefix(LOADING)) {
        (Some(known), _) if known == text.as_bytes() => TableState::Whole,
        (_, Some(_)) => TableState::Loading,
        _ => TableState::Other,
    })
}

/// Keeps the definition of a table, durably.
///
/// # Errors
/// What writing said.
pub(crate) fn keep(engine: &Engine, table: &Table, is_whole: bool) -> Result<(), EngineError> {
    let definitions = engine.open_table(DEFINITIONS)?;
    let value = [if is_whole { WHOLE } else { LOADING }, text(table).as_bytes()].concat();
    let mut batch = engine.batch();
    batch.put(&definitions, table.name.as_bytes(), &value)?;
    batch.commit()
}

/// Forgets the definition of a table that is no more.
///
/// # Errors
/// What writing said.
pub(crate) fn forget(engine: &Engine, table: &Table) -> Result<(), EngineError> {
    let Some(definitions) = engine.table(DEFINITIONS)? else { return Ok(()) };
    let mut batch = engine.batch();
    batch.delete(&definitions, table.name.as_bytes())?;
    batch.commit()
}

/// The definition as text: what decides how rows are laid out. Of indexes too, whose entries must
/// be those of their columns.
fn text(table: &Table) -> String {
    let mut text = format!("1 key {:?}", table.key);
    for column in &table.columns {
        let null = if column.is_nullable { " null" } else { "" };
        let _never_fails = write!(text, "; {} {:?}{null}", column.name, column.of);
    }
    for index in &table.indexes {
        let _never_fails = write!(text, "; index {} {:?}", index.name, index.columns);
    }
    text
}
