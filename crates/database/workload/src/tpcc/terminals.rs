//! Terminals of TPC-C for the driver: what each does in its turn, and how that ends.
//!
//! Invariant: an order counts as acknowledged when it is settled and not before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use iostrata_database::target::{Isolation, Schema, Session, SessionOptions, Target, TargetError};
use iostrata_load::{
    NextTransaction, Ran, SessionError, Settlement, TransactionCost, TransactionSource,
    TransactionWorker, Turn,
};
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::slots::Slots;
use crate::tpcc::dataset::Dataset;
use crate::tpcc::draw::Constants;
use crate::tpcc::input::{Home, Input, Inputs, KINDS, Mix, Waits};
use crate::tpcc::schema::{DISTRICTS, Ops, schema};
use crate::tpcc::transaction::Runner;

/// How terminals behave.
#[derive(Clone, Copy, Debug)]
pub struct TerminalOptions {
    /// Which transactions.
    pub mix: Mix,
    /// Keying and thinking.
    pub waits: Waits,
    /// Of transactions.
    pub isolation: Isolation,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
    /// Whether a session keeps its thread waiting for the target.
    pub blocks: bool,
    /// So many terminals share all warehouses; without it each stays at one.
    pub sharing: Option<u32>,
}

/// How a run with these options differs from the specification; docs/tpcc.md gives the reasons.
pub fn deviations(options: &TerminalOptions) -> Vec<&'static str> {
    let mut all = vec![
        "results are TPC-C-like: they are not audited, and the full disclosure is this document",
        "intervals are seconds or minutes, not the two hours that a TPC result needs",
        "terminals are part of the driver: no screens are drawn",
    ];
    if options.waits == Waits::NONE {
        all.push("no keying or think times: a warehouse gives more than 12.86 new orders a minute");
        all.push("terminals are as many as threads, not ten for each warehouse");
        if options.sharing.is_some() {
            all.push("where they are fewer than warehouses, each works in several in turns");
        }
    } else if options.waits != Waits::FULL {
        all.push("keying and think times are multiplied");
    }
    match options.isolation {
        Isolation::Serializable => {}
        Isolation::RepeatableRead => {
            all.push(
                "isolation is repeatable read: new orders, payments and deliveries ask for \
                      serializable (clause 3.4)",
            );
        }
        Isolation::ReadCommitted => {
            all.push(
                "isolation is read committed: the specification requires repeatable read and \
                      serializable (clause 3.4)",
            );
        }
    }
    if options.mix != Mix::default() && options.mix != Mix::Deck {
        all.push("the mix is not the specified one");
    }
    all
}

/// New orders of each district: begun and acknowledged. Those in flight are the difference, with
/// those that failed.
#[derive(Debug, Default)]
pub struct OrderCounts {
    districts: Vec<[AtomicU32; 2]>,
}

impl OrderCounts {
    fn new(warehouses: i64) -> Self {
        let districts = (0..warehouses * DISTRICTS).map(|_| Default::default());
        Self { districts: districts.collect() }
    }

    fn add(&self, (warehouse, district): (i64, i64), which: usize) {
        let at = ((warehouse - 1) * DISTRICTS + district - 1) as usize;
        self.districts[at][which].fetch_add(1, Ordering::Relaxed);
    }

    /// Begun and acknowledged of a district.
    pub fn of(&self, warehouse: i64, district: i64) -> (u32, u32) {
        let at = ((warehouse - 1) * DISTRICTS + district - 1) as usize;
        let [begun, acknowledged] = &self.districts[at];
        (begun.load(Ordering::Relaxed), acknowledged.load(Ordering::Relaxed))
    }
}

/// All terminals of a run.
pub struct Terminals<'a> {
    target: &'a dyn Target,
    schema: Arc<Schema>,
    ops: Ops,
    inputs: Inputs,
    options: TerminalOptions,
    orders: OrderCounts,
    /// Districts that had no order when one was to be delivered.
    skipped: Arc<AtomicU64>,
}

impl<'a> Terminals<'a> {
    /// Terminals over a dataset, with constants that are legal for it.
    pub fn new(target: &'a dyn Target, dataset: &Dataset, options: TerminalOptions) -> Self {
        let mut random = Random::of_stream(options.seed, u64::MAX);
        let constants = Constants::for_run(&mut random, dataset.c_load);
        Self {
            target,
            schema: Arc::new(schema()),
            ops: Ops::new(),
            inputs: Inputs { constants, warehouses: dataset.warehouses },
            options,
            orders: OrderCounts::new(dataset.warehouses),
            skipped: Arc::default(),
        }
    }

    /// The constants of this run.
    pub fn constants(&self) -> Constants {
        self.inputs.constants
    }

    /// New orders of each district so far.
    pub fn orders(&self) -> &OrderCounts {
        &self.orders
    }

    /// Districts that had no order when one was to be delivered, so far.
    pub fn skipped_deliveries(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.skipped)
    }

    fn session(&self) -> Result<Box<dyn Session>, TargetError> {
        let options = SessionOptions {
            ops: Arc::clone(&self.ops.all),
            isolation: self.options.isolation,
            autocommit: false,
            as_text: self.options.as_text,
        };
        self.target.session(&self.schema, &options)
    }

    /// Where a turn takes place. Drawn from a stream of its own, so that everything else is the
    /// same wherever that is.
    fn home(&self, turn: Turn) -> Home {
        let warehouses = self.inputs.warehouses;
        match self.options.sharing {
            None => Home::of(turn.home, warehouses),
            Some(terminals) => {
                let stream = u64::from(turn.home) << 40 ^ turn.nth;
                let mut random = Random::of_stream(!self.options.seed, stream);
                Home::shared(turn.home, terminals, warehouses, &mut random)
            }
        }
    }

    /// The stream of a turn, and its kind.
    fn turn(&self, turn: Turn) -> (Random, OpKind) {
        let stream = u64::from(turn.home) << 40 ^ turn.nth;
        let mut random = Random::of_stream(self.options.seed, stream);
        let place = (turn.home, turn.nth);
        let kind = self.options.mix.kind(&mut random, self.options.seed, place);
        (random, kind)
    }
}

impl TransactionSource for Terminals<'_> {
    fn kinds(&self) -> Vec<OpKind> {
        KINDS.to_vec()
    }

    fn blocks(&self) -> bool {
        self.options.blocks
    }

    fn worker(
        &self,
        _first_slot: u32,
        slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        let slots = Slots::open(slots, || self.session())?;
        let runner = Runner::new(self.ops.clone());
        Ok(Box::new(TpccWorker { of: self, slots, runner }))
    }
}

struct TpccWorker<'a> {
    of: &'a Terminals<'a>,
    /// With the places of the new orders whose commits are pending.
    slots: Slots<Option<(i64, i64)>>,
    runner: Runner,
}

impl TransactionWorker for TpccWorker<'_> {
    fn next(&mut self, turn: Turn) -> NextTransaction {
        let (mut random, kind) = self.of.turn(turn);
        let (keying, think) = self.of.options.waits.draw(&mut random, kind);
        NextTransaction { kind, keying, think, is_deferred: kind == OpKind::Delivery }
    }

    fn run(&mut self, slot: u32, turn: Turn) -> Ran {
        let (mut random, kind) = self.of.turn(turn);
        let waits = self.of.options.waits;
        // Drawn as in `next`, so that the input is the same with waits and without.
        let _waits = waits.draw(&mut random, kind);
        let home = self.of.home(turn);
        let input = self.of.inputs.draw(&mut random, kind, home);
        let order = match &input {
            Input::NewOrder { place, .. } if !input.is_rolled_back() => Some(*place),
            _ => None,
        };
        order.iter().for_each(|place| self.of.orders.add(*place, 0));
        let (runner, mut skipped) = (&mut self.runner, 0);
        let (ended, retries) = self.slots.run(slot, order, |session| {
            let (work, shown) = runner.run(session, &input, now_s())?;
            skipped = shown.skipped;
            Ok(work)
        });
        if skipped > 0 {
            self.of.skipped.fetch_add(skipped.into(), Ordering::Relaxed);
        }
        Ran { kind, ended, retries }
    }

    fn settle(&mut self, slot: u32, waits: bool) -> Settlement {
        let (known, settled) = self.slots.settle(slot, waits);
        if let Some(place) = known.flatten() {
            self.of.orders.add(place, 1);
        }
        settled
    }

    fn reopen(&mut self, slot: u32) -> Result<(), String> {
        self.slots.reopen(slot, self.of.session())
    }

    fn cost(&self) -> TransactionCost {
        self.slots.cost()
    }
}

/// Seconds since 1970.
pub fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as i64
}
