//! Sessions that take turns on one thread, by chance, over batches, tables that come and go, and
//! the background.
//!
//! Invariant: the same seed and shape give the same calls; no session waits for a lock, so what
//! each call must answer is known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iostrata_engine::{
    Direction, Engine, EngineError, FlushLogAt, Isolation, Table, Ticket, TransactionOptions,
};
use iostrata_io::disk::{MemDisk, TraceDisk};

use crate::common::answers::{Answer, Trouble, World};
use crate::common::chance::Chance;
use crate::common::committed::{Committed, TableKey};
use crate::common::engine::{EngineStore, How};
use crate::common::model::{History, Tables};
use crate::common::plan::Shape;
use crate::common::record::Recording;
use crate::common::session::{Ended, Session};

/// Sessions that are open at a time.
const SESSIONS: usize = 4;
/// Calls and other steps of a run for each batch of its shape.
const STEPS: usize = 24;
/// Numbers of what is acknowledged to readers.
const READERS: u64 = 1 << 50;

pub const LEVELS: [Isolation; 3] =
    [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Snapshot];

/// Sessions at work.
pub struct Sessions<'a> {
    pub(super) engine: &'a Engine,
    pub(super) disk: &'a TraceDisk,
    pub(super) shape: &'a Shape,
    pub(super) chance: Chance,
    pub world: World,
    open: Vec<Option<Session>>,
    pub(super) waiting: Vec<(u64, Ticket)>,
    readers: u64,
    pub(super) now_us: u64,
    pub(super) delete_percent: usize,
    /// Calls may fail: the disk does.
    pub may_fail: bool,
    /// It is not known what is there.
    pub(super) is_over: bool,
    /// What happened how often.
    pub seen: BTreeMap<&'static str, usize>,
}

impl<'a> Sessions<'a> {
    /// Sessions on an engine that holds the rows of a history.
    pub fn new(
        engine: &'a Engine,
        (disk, shape): (&'a TraceDisk, &'a Shape),
        history: History,
        seed: u64,
    ) -> Self {
        Self {
            engine,
            disk,
            shape,
            chance: Chance::new(seed),
            world: World { committed: Committed::new(history), locks: Default::default() },
            open: (0..SESSIONS).map(|_| None).collect(),
            waiting: Vec::new(),
            readers: READERS,
            now_us: 0,
            delete_percent: 10,
            may_fail: false,
            is_over: false,
            seen: BTreeMap::new(),
        }
    }

    /// All phases of a run: grow, shrink, grow, shrink nearly to nothing, grow.
    pub fn whole(&mut self) -> Result<(), String> {
        for percent in [5, 40, 10, 80, 20] {
            self.delete_percent = percent;
            self.steps(self.shape.batches * STEPS / 5)?;
        }
        self.wait_all()
    }

    /// So many steps.
    pub fn steps(&mut self, steps: usize) -> Result<(), String> {
        for step in 0..steps {
            self.step().map_err(|what| format!("step {step} of {steps}: {what}"))?;
        }
        Ok(())
    }

    pub(super) fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// What the engine answers must not be an error, or the disk must be one that fails.
    pub(super) fn allowed(&mut self, result: Result<(), EngineError>) -> Result<(), String> {
        match result {
            Ok(()) => Ok(()),
            Err(EngineError::Broken { what }) => Err(format!("broken: {what}")),
            Err(_) if self.may_fail => {
                self.saw("a failure");
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.is_over {
            return Ok(());
        }
        if self.world.committed.tables.is_empty() {
            return self.create(0);
        }
        match self.chance.below(200) {
            0..3 => {
                let result = self.engine.checkpoint();
                self.allowed(result)
            }
            3..5 => self.set(),
            5..8 => self.create_or_drop(),
            8..20 => self.batch(),
            20..30 => self.wait_one(),
            30..32 => self.wait_all(),
            32..52 => self.background(),
            52..58 => self.plain_get(),
            _ => self.session(),
        }
    }

    fn session(&mut self) -> Result<(), String> {
        let place = self.chance.below(SESSIONS);
        let Some(mut session) = self.open[place].take() else { return self.begin(place) };
        if session.calls == 0 {
            return self.end(session);
        }
        session.calls -= 1;
        let (table, key) = self.table();
        match self.call(&mut session, &table, key) {
            Ok(Answer::Over) => {
                self.saw("a conflict");
                self.let_go(&session);
                self.trouble(session.says_over(&table))
            }
            Ok(Answer::Blocked) => {
                self.saw("a locked row");
                if self.chance.percent(50) {
                    self.let_go(&session);
                } else {
                    self.open[place] = Some(session);
                }
                Ok(())
            }
            Ok(Answer::Fine | Answer::Exists | Answer::TooLarge) => {
                self.open[place] = Some(session);
                Ok(())
            }
            Err(trouble) => {
                self.let_go(&session);
                self.trouble(Err(trouble)).map_err(|what| {
                    format!("{:?}, transaction {}: {what}", session.level, session.number)
                })
            }
        }
    }

    fn trouble(&mut self, result: Result<(), Trouble>) -> Result<(), String> {
        match result {
            Ok(()) => Ok(()),
            Err(Trouble::Wrong(what)) => Err(what),
            Err(Trouble::Failed(error)) => self.allowed(Err(error)),
        }
    }

    fn begin(&mut self, place: usize) -> Result<(), String> {
        let is_read_only = self.chance.percent(30);
        let options = options(*self.chance.pick(&LEVELS), is_read_only, &mut self.chance);
        match Session::begin(self.engine, options, &self.world) {
            Ok(mut session) => {
                let most = match self.chance.below(100) {
                    0..25 => 100,
                    // Old versions heap up behind one in a long run.
                    25..40 if self.shape.batches > 100 => self.shape.batches * 10,
                    _ => 8,
                };
                session.calls = self.chance.within(1, most);
                self.open[place] = Some(session);
                Ok(())
            }
            Err(error) => self.allowed(Err(error)),
        }
    }

    fn let_go(&mut self, session: &Session) {
        self.world.locks.retain(|_, holder| *holder != session.number);
    }

    /// Commits, or one time in three rolls back.
    fn end(&mut self, session: Session) -> Result<(), String> {
        self.let_go(&session);
        if self.chance.percent(30) {
            self.saw("a rollback");
            return Ok(());
        }
        let (needed, is_acknowledged) = (session.needed, session.is_acknowledged);
        match session.commit(&self.world) {
            Ok(Ended::Committed(writes, ticket)) => {
                self.saw("a commit");
                self.committed(writes, is_acknowledged.then_some(ticket))
            }
            Ok(Ended::Read(ticket)) => {
                self.saw(if needed > 0 { "a reader" } else { "a reader of nothing" });
                if is_acknowledged {
                    self.readers += 1;
                    self.world.committed.history.read(self.readers, needed);
                    self.waiting.push((self.readers, ticket));
                    // Before the commits that it has read from.
                    if self.chance.percent(70) {
                        return self.wait_for(self.waiting.len() - 1);
                    }
                }
                Ok(())
            }
            Ok(Ended::Refused) => {
                self.saw("a commit that was refused");
                Ok(())
            }
            Err(trouble) => self.trouble(Err(trouble)),
        }
    }

    fn call(
        &mut self,
        session: &mut Session,
        table: &Table,
        key: TableKey,
    ) -> Result<Answer, Trouble> {
        let (row, value) = (self.row(key), self.value());
        let is_delete = self.chance.percent(self.delete_percent);
        let number = self.chance.below(100);
        let world = &mut self.world;
        let answer = match number {
            0..20 => session.get(world, table, &row),
            20..32 => {
                let (a, b) = (row.1, self.key(key));
                let direction = *self.chance.pick(&[Direction::Forward, Direction::Backward]);
                let most = *self.chance.pick(&[2, 10, usize::MAX]);
                let ends = (a.as_slice().min(&b), a.as_slice().max(&b));
                session.range(&self.world, (table, key), ends, (direction, most))
            }
            _ if session.is_read_only => session.get(world, table, &row),
            32..38 => session.get_for_update(world, table, &row),
            38..43 => session.first_for_update(world, (table, key), &row.1),
            43..48 => {
                session.savepoint();
                Ok(Answer::Fine)
            }
            48..51 => session.rollback_to(value.len()).map(|()| Answer::Fine),
            _ if is_delete => session.delete(world, table, &row),
            51..65 => session.insert(world, table, (&row, value)),
            65..80 => session.modify(world, table, (&row, value)),
            _ => session.put(world, table, (&row, value)),
        }?;
        Ok(answer)
    }
}

/// What a transaction begins with; it waits for no lock.
fn options(isolation: Isolation, is_read_only: bool, chance: &mut Chance) -> TransactionOptions {
    let mut options = TransactionOptions::from(isolation);
    options.is_read_only = is_read_only;
    options.lock_wait_timeout = Some(Duration::ZERO);
    if chance.percent(5) {
        options.flush_log_at = Some(FlushLogAt::Timeout);
    }
    options
}

/// Runs sessions on an empty disk, from the creation to the close; every other time some of them
/// are still open then.
pub fn record_sessions(seed: u64, shape: &Shape, how: &How) -> Result<Recording, String> {
    let disk = TraceDisk::new(MemDisk::new());
    let engine = how.open(Arc::new(disk.clone())).map_err(|error| error.to_string())?;
    let opened = disk.points() - 1;
    let history = History::new(Tables::new());
    let mut sessions = Sessions::new(&engine, (&disk, shape), history, seed);
    sessions.whole()?;
    if seed.is_multiple_of(2) {
        sessions.open.clear();
    }
    engine.clone().close().map_err(|error| error.to_string())?;
    let history = sessions.world.committed.history;
    Ok(Recording { seed, disk, history, opened })
}

/// Goes on with sessions, which are left as they are in the end.
pub fn go_on(
    store: &EngineStore,
    disk: &TraceDisk,
    history: History,
    shape: &Shape,
    seed: u64,
    batches: usize,
) -> Result<History, String> {
    let mut sessions = Sessions::new(&store.0, (disk, shape), history, seed);
    sessions.steps(batches * STEPS)?;
    Ok(sessions.world.committed.history)
}
