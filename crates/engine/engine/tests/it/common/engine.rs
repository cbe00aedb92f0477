//! The engine as a store under test, as small as it gets.

use std::sync::Arc;
use std::time::Duration;

use iostrata_engine::{
    Background, Direction, Disks, Engine, EngineError, Isolation, RequestError, Settings, Table,
    TableError, Ticket, Transaction,
};
use iostrata_io::disk::Disk;

use crate::common::altered::{Alteration, Altered};
use crate::common::halves::Half;
use crate::common::model::{Tables, row_digest, table_digest, table_name};
use crate::common::plan::{Op, Shape};
use crate::common::store::{DAMAGE, Store};

/// The smallest engine: 64 frames, 64 KiB of redo.
pub const SMALLEST: &[(&str, &str)] = &[
    ("page_size", "4K"),
    ("buffer_pool_size", "256K"),
    ("redo_log_capacity", "64K"),
    ("log_buffer_size", "64K"),
    ("data_files", "1"),
    ("autoextend_increment", "64K"),
    ("doublewrite_pages", "8"),
];

/// Work for it.
pub const SHAPE: Shape = Shape {
    batches: 60,
    tables: 3,
    rows: 8,
    key_bytes: 200,
    value_bytes: 1_200,
    batch_bytes: 6_000,
    live: &[
        ("redo_log_capacity", &["64K", "128K", "256K"]),
        ("io_capacity", &["100", "4000"]),
        ("merge_threshold", &["1", "50"]),
    ],
};

/// The same, with settings left as they are.
pub const STILL: Shape = Shape { live: &[], ..SHAPE };

/// The same, with the policy and the size of the redo exchanged while pages are being written.
pub const EXCHANGED: Shape = Shape {
    live: &[
        ("policy", &["steady", "fixed-100", "adaptive", "page-cleaner-56", "mariadb"]),
        ("redo_log_capacity", &["64K", "128K", "256K"]),
    ],
    ..SHAPE
};

/// More data than the smallest pool has room for, in trees of three levels.
pub const LARGE: Shape = Shape {
    batches: 400,
    rows: 30,
    key_bytes: 489,
    value_bytes: 1_500,
    batch_bytes: 6_200,
    ..SHAPE
};

/// Work for sessions.
pub const SESSIONS: Shape = Shape {
    live: &[
        ("redo_log_capacity", &["64K", "128K", "256K"]),
        ("purge_batch_size", &["1", "300"]),
        ("merge_threshold", &["1", "50"]),
    ],
    ..SHAPE
};

/// More of them than the smallest pool has room for, and more old versions than memory.
pub const LARGE_SESSIONS: Shape =
    Shape { batches: 300, key_bytes: 489, value_bytes: 1_500, rows: 20, ..SESSIONS };

/// Tables that may have an index: as many as a shape has.
const INDEXED_TABLES: usize = 3;

/// By the length of the value, but for every seventh.
fn by_size(_key: &[u8], value: &[u8], secondary: &mut Vec<u8>) -> bool {
    secondary.push((value.len() % 5) as u8);
    !value.len().is_multiple_of(7)
}

/// How an engine is opened.
#[derive(Clone, Debug)]
pub struct How {
    pub settings: Vec<(&'static str, &'static str)>,
    /// What is wrong with its disk.
    pub alteration: Option<Alteration>,
    /// Redo in a directory of its own.
    pub is_apart: bool,
    /// Every table has an index.
    pub is_indexed: bool,
    pub background: Background,
}

impl How {
    /// The smallest engine with these settings besides.
    pub fn with(settings: &[(&'static str, &'static str)]) -> Self {
        let settings = [SMALLEST, settings].concat();
        let (is_apart, is_indexed) = (false, false);
        let background = Background::Manual;
        Self { settings, alteration: None, is_apart, is_indexed, background }
    }

    /// Threads, more frames than a batch has pages, and data files that take a while to be synced:
    /// several batches are under way at once.
    pub fn side_by_side() -> Self {
        let slow_sync = Some(("data", Duration::from_micros(500)));
        let slow = Alteration { slow_sync, ..Alteration::default() };
        let how = Self::with(&[("buffer_pool_size", "1M")]).altered(slow);
        Self { background: Background::Threads, ..how }
    }

    pub fn altered(self, alteration: Alteration) -> Self {
        Self { alteration: Some(alteration), ..self }
    }

    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            settings.set(name, value).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        settings
    }

    fn disks(&self, disk: Arc<dyn Disk>) -> Disks {
        let disk: Arc<dyn Disk> = match &self.alteration {
            Some(alteration) => Altered::new(disk, alteration.clone()),
            None => disk,
        };
        if self.is_apart {
            let (data, redo) = (Half::new(Arc::clone(&disk), 'd'), Half::new(disk, 'r'));
            Disks { data, redo }
        } else {
            Disks { data: Arc::clone(&disk), redo: disk }
        }
    }

    /// Opens an engine with its own errors.
    pub fn open(&self, disk: Arc<dyn Disk>) -> Result<Engine, EngineError> {
        let mut options = Engine::options().settings(self.settings());
        if self.is_indexed {
            for table in 0..INDEXED_TABLES {
                options = options.index(&table_name(table), "size", by_size);
            }
        }
        options.open_on(self.disks(disk), self.background)
    }
}

/// Whether an error reports a damaged page.
pub fn is_damage(error: &EngineError) -> bool {
    match error {
        EngineError::Corrupt { .. } => true,
        EngineError::Poisoned { cause } => is_damage(cause),
        other => other.to_string().contains("torn"),
    }
}

fn said(error: EngineError) -> String {
    if is_damage(&error) { format!("{DAMAGE}{error}") } else { error.to_string() }
}

/// Commits these changes, or as many of the first as one batch may have in so small a pool.
pub fn commit(engine: &Engine, ops: &[Op]) -> Result<(Ticket, usize), EngineError> {
    let mut count = ops.len();
    loop {
        match commit_all(engine, &ops[..count]) {
            Err(
                EngineError::Request(RequestError::BatchTooWide { .. })
                | EngineError::Request(RequestError::BatchTooLarge { .. }),
            ) if count > 1 => {
                count /= 2;
            }
            ticket => return ticket.map(|ticket| (ticket, count)),
        }
    }
}

fn commit_all(engine: &Engine, ops: &[Op]) -> Result<Ticket, EngineError> {
    let mut batch = engine.batch();
    for op in ops {
        let name = table_name(op.table);
        let table =
            engine.table(&name)?.ok_or(EngineError::Table(TableError::NotFound { name }))?;
        match &op.value {
            Some(value) => batch.put(&table, &op.key, value)?,
            None => batch.delete(&table, &op.key)?,
        }
    }
    batch.commit_async()
}

/// Every row, in the order of the direction.
pub fn each_row(
    table: &Table,
    direction: Direction,
    mut row: impl FnMut(&[u8], &[u8]),
) -> Result<(), EngineError> {
    let mut range = table.cursor(.., direction);
    while let Some((key, value)) = range.next_row()? {
        row(key, value);
    }
    Ok(())
}

/// Everything in an engine.
pub fn contents(engine: &Engine) -> Result<Tables, EngineError> {
    let mut all = Tables::new();
    for name in engine.tables()? {
        let table = open_table(engine, &name)?;
        let rows = all.entry(name).or_default();
        each_row(&table, Direction::Forward, |key, value| {
            rows.insert(key.to_vec(), value.to_vec());
        })?;
    }
    Ok(all)
}

/// Deleted rows that are still in the leaves. Not while rows are written.
pub fn tombstones(engine: &Engine) -> Result<u64, EngineError> {
    let (report, mut all) = (engine.check()?, 0);
    for name in engine.tables()? {
        let mut rows = 0;
        each_row(&open_table(engine, &name)?, Direction::Forward, |_, _| rows += 1)?;
        let cells = report.tables.iter().find(|table| table.name == name);
        all += cells.map_or(0, |table| table.rows) - rows;
    }
    Ok(all)
}

fn open_table(engine: &Engine, name: &str) -> Result<Table, EngineError> {
    engine
        .table(name)?
        .ok_or_else(|| EngineError::Table(TableError::NotFound { name: name.to_owned() }))
}

/// Steps after which a walk over three small tables is over.
const SETTLED_AFTER: u64 = 8;

/// The digest of everything as a transaction sees it.
fn snapshot_digest((engine, reader): &mut (&Engine, Transaction)) -> Result<u64, EngineError> {
    let mut digest = 0u64;
    for name in engine.tables()? {
        digest = digest.wrapping_add(table_digest(&name));
        let table = open_table(engine, &name)?;
        let mut rows = reader.cursor(&table, .., Direction::Forward)?;
        while let Some((key, value)) = rows.next_row()? {
            digest = digest.wrapping_add(row_digest(&name, key, value));
        }
    }
    Ok(digest)
}

/// An engine under test.
pub struct EngineStore(pub Engine);

impl EngineStore {
    /// The digest of a table by a scan, whose order is checked.
    fn scanned(&self, name: &str, direction: Direction) -> Result<(u64, usize), String> {
        let table = open_table(&self.0, name).map_err(said)?;
        let (mut digest, mut rows) = (table_digest(name), 0);
        let mut last: Option<Vec<u8>> = None;
        let mut disorder = None;
        each_row(&table, direction, |key, value| {
            let in_order = match (&last, direction) {
                (None, _) => true,
                (Some(last), Direction::Forward) => last.as_slice() < key,
                (Some(last), Direction::Backward) => last.as_slice() > key,
            };
            if !in_order {
                disorder = Some(format!("{name}: {key:02x?} comes after {last:02x?}"));
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            digest = digest.wrapping_add(row_digest(name, key, value));
            rows += 1;
        })
        .map_err(said)?;
        disorder.map_or(Ok((digest, rows)), Err)
    }
}

impl Store for EngineStore {
    type How = How;
    type Ticket = Ticket;

    fn open(disk: Arc<dyn Disk>, how: &How) -> Result<Self, String> {
        how.open(disk).map(Self).map_err(said)
    }

    fn create_table(&self, name: &str) -> Result<(), String> {
        self.0.create_table(name).map(|_table| ()).map_err(said)
    }

    fn drop_table(&self, name: &str) -> Result<(), String> {
        self.0.drop_table(name).map_err(said)
    }

    fn commit(&self, ops: &[Op]) -> Result<(Ticket, usize), String> {
        commit(&self.0, ops).map_err(said)
    }

    fn place(ticket: &Ticket) -> u64 {
        ticket.lsn()
    }

    fn wait(&self, ticket: Ticket) -> Result<(), String> {
        ticket.wait().map_err(said)
    }

    fn step(&self, now_us: u64) -> Result<(), String> {
        self.0.step(now_us).map(|_next_us| ()).map_err(said)
    }

    fn checkpoint(&self) -> Result<(), String> {
        self.0.checkpoint().map_err(said)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        self.0.set(name, value).map_err(said)
    }

    fn scan(&self, table: &str, is_backward: bool) -> Result<usize, String> {
        let (forward, backward) = (Direction::Forward, Direction::Backward);
        let direction = if is_backward { backward } else { forward };
        self.scanned(table, direction).map(|(_digest, rows)| rows)
    }

    fn digest(&self) -> Result<u64, String> {
        let names = self.0.tables().map_err(said)?;
        let digests = names.iter().map(|name| self.scanned(name, Direction::Forward));
        digests
            .map(|found| found.map(|(digest, _rows)| digest))
            .try_fold(0u64, |sum, next| next.map(|digest| sum.wrapping_add(digest)))
    }

    fn contents(&self) -> Result<Tables, String> {
        contents(&self.0).map_err(said)
    }

    fn check(&self) -> Result<(), String> {
        let report = self.0.check().map_err(said)?;
        match report.problems.first() {
            None => Ok(()),
            Some(first) => Err(format!("{} problems, the first: {first:?}", report.problems_total)),
        }
    }

    /// A snapshot from right behind the opening sees every row, also while tombstones go.
    fn settle(&self) -> Result<(), String> {
        let before = self.digest()?;
        let reader = self.0.begin(Isolation::Snapshot).map_err(said);
        let mut reader = reader.map(|transaction| (&self.0, transaction))?;
        let seen_is_all = |reader: &mut (&Engine, Transaction)| match snapshot_digest(reader) {
            Ok(seen) if seen == before => Ok(()),
            Ok(_) => Err("a snapshot sees other rows than there are".to_owned()),
            Err(error) => Err(said(error)),
        };
        seen_is_all(&mut reader)?;
        for step in 0..SETTLED_AFTER {
            self.step(step * 10_000)?;
        }
        seen_is_all(&mut reader)?;
        self.check()?;
        let tables = self.0.check().map_err(said)?.tables;
        let left: u64 = tables.iter().map(|table| table.tombstones).sum();
        match (left, self.digest()? == before) {
            (0, true) => Ok(()),
            (0, false) => Err("purge changed the contents".to_owned()),
            (left, _) => Err(format!("{left} tombstones are left")),
        }
    }

    fn close(self) -> Result<(), String> {
        self.0.close().map_err(said)
    }
}
