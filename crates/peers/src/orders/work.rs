//! The loops of the threads: orders, point reads, updates of one row.
//!
//! Invariant: only settled transactions are counted; one that had to give way is run again and
//! counted as tried again.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::rows::{RowKey, Scale, change_word, word};
use super::store::{OrderThread, RowError};
use super::transaction::{NewOrder, Orders, Scratchpad, run};
use crate::drive::{Tick, Work};
use crate::engines::Engine;
use crate::error::PeerError;
use crate::keys::Numbers;

/// Point reads of one transaction.
const READS: u64 = 10;
/// Settled orders of each thread that are read back.
const KEPT_ORDERS: usize = 2_000;

/// What the threads of a window share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Transactions that were begun anew.
    pub retries: AtomicU64,
    /// The last settled orders with their numbers.
    pub placed: Mutex<Vec<(NewOrder, u32)>>,
}

/// One thread and how far it may run ahead.
pub struct Session<'a> {
    /// Which engine, for errors.
    pub engine: Engine,
    /// Its transactions.
    pub thread: Box<dyn OrderThread + 'a>,
    /// Commits that may be unsettled.
    pub unsettled: usize,
    /// Where to report.
    pub shared: &'a Shared,
}

impl Session<'_> {
    /// Runs a transaction until it is committed.
    fn transact(&mut self, body: &mut super::store::Body<'_>) -> Result<(), PeerError> {
        loop {
            match self.thread.transact(body) {
                Ok(()) => return Ok(()),
                Err(RowError::Conflict) => {
                    self.shared.retries.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                }
                Err(RowError::Failed(error)) => return Err(error),
                Err(RowError::Missing(key)) => {
                    let found = format!("a row of {:?} is not there: {key:x?}", key.relation());
                    return Err(PeerError::WrongData { engine: self.engine.name(), found });
                }
            }
        }
    }

    /// Counts what is settled by now; all of it when the time is over.
    fn settle(&mut self, tick: &mut Tick<'_>) -> Result<(u64, ControlFlow<()>), PeerError> {
        let settled = self.thread.settle(self.unsettled)?;
        let flow = tick(settled);
        let last = if flow.is_break() { self.thread.settle(0)? } else { 0 };
        Ok((settled + last, flow))
    }
}

/// Places orders.
pub struct Placing<'a> {
    session: Session<'a>,
    orders: Orders,
    pad: Scratchpad,
    /// Committed, not known to be settled.
    waiting: VecDeque<(NewOrder, u32)>,
    settled: VecDeque<(NewOrder, u32)>,
}

impl<'a> Placing<'a> {
    /// Orders of a seed.
    pub fn new(session: Session<'a>, scale: Scale, seed: u64) -> Self {
        let (waiting, settled) = (VecDeque::new(), VecDeque::new());
        let orders = Orders::new(scale, seed);
        Self { session, orders, pad: Scratchpad::default(), waiting, settled }
    }
}

impl Work for Placing<'_> {
    fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError> {
        let order = self.orders.draw();
        let (mut number, pad) = (0, &mut self.pad);
        self.session.transact(&mut |rows| {
            number = run(&order, rows, pad)?;
            Ok(())
        })?;
        self.waiting.push_back((order, number));
        let (settled, flow) = self.session.settle(tick)?;
        let settled = (settled as usize).min(self.waiting.len());
        self.settled.extend(self.waiting.drain(..settled));
        let too_many = self.settled.len().saturating_sub(KEPT_ORDERS);
        self.settled.drain(..too_many);
        if flow.is_break() {
            let placed = self.session.shared.placed.lock();
            placed.unwrap_or_else(PoisonError::into_inner).extend(self.settled.drain(..));
        }
        Ok(flow)
    }
}

/// Reads rows of the stock, or changes one in each transaction.
pub struct Stocktaking<'a> {
    /// The thread.
    pub session: Session<'a>,
    /// What is loaded.
    pub scale: Scale,
    /// Which rows.
    pub numbers: Numbers,
    /// Whether it changes them.
    pub is_writing: bool,
}

impl Stocktaking<'_> {
    fn key(&mut self) -> RowKey {
        let warehouse = self.numbers.below(u64::from(self.scale.warehouses)) as u8;
        RowKey::stock(warehouse, self.numbers.below(u64::from(self.scale.items)) as u32)
    }
}

impl Work for Stocktaking<'_> {
    fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError> {
        if self.is_writing {
            let key = self.key();
            self.session.transact(&mut |rows| {
                let change = &mut |stock: &mut Vec<u8>| {
                    change_word(stock, 2, |orders| orders.wrapping_add(1));
                };
                if rows.modify(&key, change)? { Ok(()) } else { Err(RowError::Missing(key)) }
            })?;
            return Ok(self.session.settle(tick)?.1);
        }
        let keys: [RowKey; READS as usize] = std::array::from_fn(|_| self.key());
        self.session.transact(&mut |rows| {
            for key in keys {
                let mut sum = 0;
                if !rows.get(&key, &mut |value| sum ^= word(value, 0))? {
                    return Err(RowError::Missing(key));
                }
                std::hint::black_box(sum);
            }
            Ok(())
        })?;
        self.session.thread.settle(0)?;
        Ok(tick(READS))
    }
}

/// Takes what was placed out of what the threads shared.
pub fn placed(shared: Shared) -> Vec<(NewOrder, u32)> {
    shared.placed.into_inner().unwrap_or_else(PoisonError::into_inner)
}
