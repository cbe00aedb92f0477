//! The engine of a directory as a target: tables, loading, sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iostrata_database::target::{
    Isolation as Level, Part, Rows, Sampler, Schema, Session, SessionOptions, TableFacts, Target,
    TargetError, TargetFacts, Trouble,
};
use iostrata_engine::{Engine, EngineError, Isolation, OpenOptions, STATUS_FILE, Settings, Table};
use iostrata_innodb::CATALOGUE;
use iostrata_run::ResourceUse;

use crate::compile::{OpBuffers, compile, needs};
use crate::error::{misused, told};
use crate::sampler::{CounterSampler, data_bytes, facts, takes_direct, used};
use crate::session::{EmbeddedSession, Tickets};
use crate::table::{self, BulkRows, OpenTable, SharedTable, TableState, encode_rows};

/// An engine that is open in this process, for the tables of one schema.
///
/// While it is open it publishes its counters once in a while, for readers of the status page of
/// its directory. Close it: one that is only dropped is recovered at the next opening.
#[derive(Debug)]
pub struct EmbeddedTarget {
    name: Arc<str>,
    engine: Engine,
    schema: Arc<Schema>,
    /// By number in the schema.
    shared_tables: Vec<Arc<SharedTable>>,
    takes_direct: bool,
    directory: PathBuf,
}

impl EmbeddedTarget {
    /// Opens the engine of a directory, or makes one there if the directory is empty or missing.
    /// `settings` are names and values as in docs/settings.md; those left out are as they are kept
    /// with the data, or for a new engine those of [`Engine::server_settings`].
    ///
    /// # Errors
    /// An unknown setting; a directory that another process has, or that holds something else; the
    /// error of opening.
    pub fn open(
        directory: &Path,
        schema: &Schema,
        settings: &[(String, String)],
    ) -> Result<Self, TargetError> {
        let name: Arc<str> = format!("engine:{}", directory.display()).into();
        let shared_tables: Vec<_> =
            schema.tables.iter().map(SharedTable::new).map(Arc::new).collect();
        let opened = opened(directory, settings, &shared_tables);
        let engine = opened.map_err(|error| told(error, &name, "open the engine"))?;
        let takes_direct = takes_direct(directory, STATUS_FILE);
        let schema = Arc::new(schema.clone());
        let directory = directory.to_owned();
        let target = Self { name, engine, schema, shared_tables, takes_direct, directory };
        for shared in &target.shared_tables {
            target.go_on_counting(shared)?;
        }
        Ok(target)
    }

    /// Makes an engine in an empty or missing directory with the settings that are kept with the
    /// engine of another one, where there is one, and some of them changed. Its redo lies with its
    /// data.
    ///
    /// # Errors
    /// As [`EmbeddedTarget::open`].
    pub fn open_like(
        other: &Path,
        directory: &Path,
        schema: &Schema,
        changed: &[(String, String)],
    ) -> Result<Self, TargetError> {
        let name = format!("engine:{}", other.display());
        let kept = Engine::kept_settings(other);
        let kept = kept.map_err(|error| told(error, &name, "read the settings"))?;
        let mut settings = kept_texts(kept.as_ref());
        settings.extend_from_slice(changed);
        Self::open(directory, schema, &settings)
    }

    /// The engine: for its counters, to check it, to change a setting while it runs.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Closes the engine, so that the next opening has nothing to recover. Sessions that are left
    /// are of no use any more.
    ///
    /// # Errors
    /// The engine's error; everything that was settled is found again all the same.
    pub fn close(self) -> Result<(), TargetError> {
        let Self { name, engine, .. } = self;
        engine.close().map_err(|error| told(error, &name, "close the engine"))
    }

    fn told(&self, error: EngineError, doing: &str, table: &str) -> TargetError {
        told(error, &self.name, &format!("{doing} {table}"))
    }

    /// The table of this number, which has to be as it was when the target was opened.
    fn shared(&self, schema: &Schema, table: usize) -> Result<&Arc<SharedTable>, TargetError> {
        let declared = schema.tables.get(table);
        let shared = self.shared_tables.get(table);
        match (declared, shared) {
            (Some(declared), Some(shared)) if shared.layout.table == *declared => Ok(shared),
            _ => {
                let text = format!("table {table} is not one of the tables that it was opened for");
                Err(misused(&self.name, text))
            }
        }
    }

    fn state(&self, shared: &SharedTable) -> Result<TableState, TargetError> {
        let table = &shared.layout.table;
        let state = table::state(&self.engine, table);
        state.map_err(|error| self.told(error, "look for table", &table.name))
    }

    /// A table that can be used.
    fn whole_table(&self, shared: &Arc<SharedTable>) -> Result<Arc<OpenTable>, TargetError> {
        let name = &shared.layout.table.name;
        let (text, fix) = match self.state(shared)? {
            TableState::Whole => {
                let table = self.engine.table(name);
                let table = table.map_err(|error| self.told(error, "open table", name))?;
                match table {
                    Some(table) => {
                        return Ok(Arc::new(OpenTable { shared: Arc::clone(shared), table }));
                    }
                    None => (format!("there is no table {name}"), "load it"),
                }
            }
            TableState::Absent => (format!("there is no table {name}"), "load it first"),
            TableState::Other => (
                format!("table {name} is there, but with other columns or indexes"),
                "remove it and load it again, or open it as what it was made for",
            ),
            TableState::Loading => {
                (format!("table {name} was not loaded to its end"), "remove it and load it again")
            }
        };
        Err(TargetError::not_ready(&self.name, "table", text, fix))
    }

    fn go_on_counting(&self, shared: &SharedTable) -> Result<(), TargetError> {
        let name = &shared.layout.table.name;
        let table = self.engine.table(name);
        let table = table.and_then(|table| table.map_or(Ok(()), |of| shared.go_on_counting(&of)));
        table.map_err(|error| self.told(error, "look for the last row of table", name))
    }

    /// Makes the indexes of a table that are late, or those that are not.
    fn make_indexes(&self, shared: &SharedTable, is_late: bool) -> Result<(), TargetError> {
        let table = &shared.layout.table;
        for index in table.indexes.iter().filter(|index| index.is_late == is_late) {
            let made = self.engine.make_index(&table.name, &index.name);
            made.map_err(|error| {
                self.told(error, &format!("make index {} of table", index.name), &table.name)
            })?;
        }
        Ok(())
    }

    /// An empty table without indexes, whatever is there.
    fn bare_table(&self, shared: &SharedTable) -> Result<Table, TargetError> {
        let name = &shared.layout.table.name;
        let made = || {
            if self.engine.table(name)?.is_some() {
                self.engine.drop_table(name)?;
            }
            table::keep(&self.engine, &shared.layout.table, false)?;
            self.engine.create_table(name)
        };
        let made = made().map_err(|error| self.told(error, "make table", name))?;
        self.go_on_counting(shared)?;
        Ok(made)
    }

    fn mark_whole(&self, shared: &SharedTable) -> Result<(), TargetError> {
        let table = &shared.layout.table;
        let kept = table::keep(&self.engine, table, true);
        kept.map_err(|error| self.told(error, "note the end of loading table", &table.name))
    }
}

fn opened(
    directory: &Path,
    settings: &[(String, String)],
    shared_tables: &[Arc<SharedTable>],
) -> Result<Engine, EngineError> {
    let kept = Engine::kept_settings(directory)?;
    let mut options = Engine::options().settings(with(kept, settings)?);
    for shared in shared_tables {
        options = with_indexes(options, shared);
    }
    options.open(directory)
}

/// The kept settings, or those of a server, with some of them changed.
fn with(kept: Option<Settings>, changed: &[(String, String)]) -> Result<Settings, EngineError> {
    let mut settings = kept.unwrap_or_else(Engine::server_settings);
    for (name, value) in changed {
        settings.set(name, value)?;
    }
    Ok(settings)
}

/// Kept settings by name, but for where the redo is.
fn kept_texts(kept: Option<&Settings>) -> Vec<(String, String)> {
    let names = CATALOGUE.iter().map(|setting| setting.name);
    let text = |name: &str| Some((name.to_owned(), kept?.get(name).ok()?));
    names.filter(|name| *name != "redo_directory").filter_map(text).collect()
}

/// All indexes are late ones of the engine: a table is filled before any of them is made.
fn with_indexes<'p>(mut options: OpenOptions<'p>, shared: &SharedTable) -> OpenOptions<'p> {
    let table = &shared.layout.table;
    for (declared, index) in table.indexes.iter().zip(&shared.indexes) {
        let index = Arc::clone(index);
        let extract = move |key: &[u8], row: &[u8], secondary: &mut Vec<u8>| {
            index.extract(key, row, secondary)
        };
        options = options.late_index(&table.name, &declared.name, extract);
    }
    options
}

impl Target for EmbeddedTarget {
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        let facts = facts(&self.engine, &self.name, self.takes_direct);
        facts.map_err(|error| told(error.into(), &self.name, "read its settings"))
    }

    fn used(&self) -> Result<ResourceUse, TargetError> {
        Ok(used(&self.engine))
    }

    fn present(&self, schema: &Schema) -> Result<Vec<usize>, TargetError> {
        let names = self.engine.tables();
        let names = names.map_err(|error| told(error, &self.name, "list its tables"))?;
        let is_there = |table: &usize| names.contains(&schema.tables[*table].name);
        Ok((0..schema.tables.len()).filter(is_there).collect())
    }

    fn create(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        let shared = self.shared(schema, table)?;
        let name = &shared.layout.table.name;
        if !matches!(self.state(shared)?, TableState::Absent | TableState::Loading) {
            let (target, text) =
                (self.name.to_string(), format!("there is a table {name} already"));
            let (trouble, code) = (Trouble::Exists, "table_exists".to_owned());
            let fix = Some("remove it first".to_owned());
            return Err(TargetError { trouble, code, target, text, fix });
        }
        self.bare_table(shared)?;
        self.make_indexes(shared, false)?;
        self.mark_whole(shared)
    }

    fn finish(&self, schema: &Schema) -> Result<(), TargetError> {
        for table in self.present(schema)? {
            self.make_indexes(self.shared(schema, table)?, true)?;
        }
        Ok(())
    }

    fn remove(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        let Some(table) = schema.tables.get(table) else { return Ok(()) };
        let removed = || {
            if self.engine.table(&table.name)?.is_some() {
                self.engine.drop_table(&table.name)?;
            }
            table::forget(&self.engine, table)
        };
        removed().map_err(|error| self.told(error, "remove table", &table.name))
    }

    fn loads_parts(&self) -> bool {
        false
    }

    fn load(
        &self,
        schema: &Schema,
        table: usize,
        part: Part,
        next: &mut dyn FnMut(&mut Rows),
    ) -> Result<u64, TargetError> {
        let shared = self.shared(schema, table)?;
        if part.is_some() {
            return Err(TargetError::whole_tables_only(&self.name));
        }
        let bare = self.bare_table(shared)?;
        let mut rows = BulkRows::default();
        let loaded = bare.bulk_load(encode_rows(shared, next, &mut rows));
        let doing = format!("load table {}", shared.layout.table.name);
        if let Some(error) = rows.failed {
            return Err(error.told(&self.name, &doing));
        }
        let loaded = loaded.map_err(|error| told(error, &self.name, &doing))?;
        self.go_on_counting(shared)?;
        self.make_indexes(shared, false)?;
        self.mark_whole(shared)?;
        Ok(loaded)
    }

    fn session(
        &self,
        schema: &Arc<Schema>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Session>, TargetError> {
        let isolation = match options.isolation {
            Level::ReadCommitted => Isolation::ReadCommitted,
            Level::RepeatableRead => Isolation::RepeatableRead,
            Level::Serializable => {
                let text = "the engine has no level serializable".to_owned();
                let fix = "use repeatable read, and read with locks what is decided by";
                return Err(TargetError::not_ready(&self.name, "unsupported", text, fix));
            }
        };
        if !Arc::ptr_eq(schema, &self.schema) && **schema != *self.schema {
            let text = "the session is for other tables than the target was opened for";
            return Err(misused(&self.name, text.to_owned()));
        }
        let open = |(table, shared): (usize, &Arc<SharedTable>)| {
            let is_needed = options.ops.iter().any(|op| needs(op, table));
            is_needed.then(|| self.whole_table(shared)).transpose()
        };
        let tables =
            self.shared_tables.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        let ops = options.ops.iter().map(|op| {
            compile(op, &tables).map_err(|why| {
                let text = format!("cannot run {}: {why}", op.name);
                TargetError::not_ready(
                    &self.name,
                    "unsupported",
                    text,
                    "leave it out, or load what it needs",
                )
            })
        });
        Ok(Box::new(EmbeddedSession {
            target: Arc::clone(&self.name),
            engine: self.engine.clone(),
            ops: ops.collect::<Result<_, _>>()?,
            isolation,
            autocommit: options.autocommit,
            transaction: None,
            tickets: Tickets::default(),
            buffers: OpBuffers::default(),
            statements: 0,
        }))
    }

    fn sampler(&self) -> Result<Option<Box<dyn Sampler>>, TargetError> {
        Ok(Some(Box::new(CounterSampler::new(self.engine.clone()))))
    }

    fn data_bytes(&self) -> Result<Option<u64>, TargetError> {
        Ok(data_bytes(&self.directory))
    }

    fn table_facts(&self, _schema: &Schema, _table: usize) -> Result<TableFacts, TargetError> {
        // Tables share the data files.
        let table_bytes = data_bytes(&self.directory);
        Ok(TableFacts { table_bytes, ..TableFacts::default() })
    }
}
