//! The same transaction as direct calls of the engine, on copies of the same tables, with a
//! hand-written row format.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use iostrata_engine::{
    Engine, EngineError, Isolation, Table, Ticket, Transaction, TransactionError,
};

use crate::draw::OrderDraw;
use crate::tables::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, LINE, NEW_ORDER, OPEN_ORDERS, ORDER, STOCK, WAREHOUSE,
};

/// Where the changed numbers stand in their rows, and how wide they are.
const NEXT_ORDER: (usize, usize) = (21, 4);
const BALANCE: [(usize, usize); 3] = [(49, 8), (57, 8), (65, 2)];
const SOLD: [(usize, usize); 3] = [(0, 2), (242, 4), (246, 2)];
/// Bytes of new rows.
const ORDER_BYTES: usize = 16;
const LINE_BYTES: usize = 44;
const HISTORY_BYTES: usize = 43;

static HISTORY_NUMBER: AtomicU64 = AtomicU64::new(1 << 40);

/// One thread of direct calls.
pub struct Direct<'s> {
    pub engine: &'s Engine,
    pub tables: &'s [Table],
    pub tickets: VecDeque<Ticket>,
    pub value: Vec<u8>,
    pub key: Vec<u8>,
    pub seen: i64,
}

impl Direct<'_> {
    /// Runs the transaction until it is committed.
    pub fn transact(&mut self, drawn: &OrderDraw) -> Result<(), EngineError> {
        loop {
            let mut transaction = self.engine.begin(Isolation::RepeatableRead)?;
            match self.body(&mut transaction, drawn) {
                Ok(()) => {
                    self.tickets.push_back(transaction.commit_async()?);
                    return Ok(());
                }
                Err(EngineError::Transaction(
                    TransactionError::Deadlock { .. } | TransactionError::LockTimeout { .. },
                )) => std::thread::yield_now(),
                Err(error) => return Err(error),
            }
        }
    }

    fn body(&mut self, t: &mut Transaction, drawn: &OrderDraw) -> Result<(), EngineError> {
        let (w, d) = drawn.place;
        let mut number = 0;
        self.set_key(&[(w, 2), (d, 1)]);
        let found = t.modify(&self.tables[DISTRICT], &self.key, |row| {
            number = read(row, NEXT_ORDER);
            add(row, NEXT_ORDER, 1);
        })?;
        assert!(found, "the district is there");
        self.get(t, WAREHOUSE, &[(w, 2)])?;
        self.get(t, CUSTOMER, &[(w, 2), (d, 1), (drawn.customer, 4)])?;
        let order = [(w, 2), (d, 1), (number, 4)];
        self.insert(t, ORDER, &order, ORDER_BYTES)?;
        self.insert(t, NEW_ORDER, &order, 0)?;
        let delivered = [(w, 2), (d, 1), (number - OPEN_ORDERS, 4)];
        self.set_key(&delivered);
        assert!(t.delete(&self.tables[NEW_ORDER], &self.key)?, "it is there");
        self.get(t, ORDER, &delivered)?;
        for (at, item) in drawn.items.into_iter().enumerate() {
            self.get(t, ITEM, &[(item, 4)])?;
            self.set_key(&[(w, 2), (item, 4)]);
            let seen = &mut self.seen;
            let found = t.modify(&self.tables[STOCK], &self.key, |row| {
                *seen = seen.wrapping_add(read(row, SOLD[0]));
                let left = read(row, SOLD[0]) - 5;
                add(row, SOLD[0], if left < 10 { 86 } else { -5 });
                add(row, SOLD[1], 5);
                add(row, SOLD[2], 1);
            })?;
            assert!(found, "the item is in stock");
            self.insert(t, LINE, &[(w, 2), (d, 1), (number, 4), (at as i64, 1)], LINE_BYTES)?;
        }
        self.set_key(&[(w, 2), (d, 1), (drawn.payer, 4)]);
        let paid = t.modify(&self.tables[CUSTOMER], &self.key, |row| {
            add(row, BALANCE[0], -50);
            add(row, BALANCE[1], 50);
            add(row, BALANCE[2], 1);
        })?;
        assert!(paid, "the customer is there");
        let payment = HISTORY_NUMBER.fetch_add(1, Ordering::Relaxed) as i64;
        self.insert(t, HISTORY, &[(payment, 8)], HISTORY_BYTES)?;
        let earlier = number - drawn.back;
        self.get(t, ORDER, &[(w, 2), (d, 1), (earlier, 4)])?;
        for line in 0..drawn.items.len() as i64 {
            self.get(t, LINE, &[(w, 2), (d, 1), (earlier, 4), (line, 1)])?;
        }
        Ok(())
    }

    fn set_key(&mut self, columns: &[(i64, usize)]) {
        self.key.clear();
        for (number, bytes) in columns {
            let bits = (number.cast_unsigned() << (64 - 8 * bytes)) ^ (1 << 63);
            self.key.extend_from_slice(&bits.to_be_bytes()[..*bytes]);
        }
    }

    fn get(
        &mut self,
        t: &mut Transaction,
        table: usize,
        key: &[(i64, usize)],
    ) -> Result<(), EngineError> {
        self.set_key(key);
        let found = t.get_into(&self.tables[table], &self.key, &mut self.value)?;
        assert!(found, "the row is there");
        self.seen = self.seen.wrapping_add(read(&self.value, (0, 2)));
        Ok(())
    }

    fn insert(
        &mut self,
        t: &mut Transaction,
        table: usize,
        key: &[(i64, usize)],
        bytes: usize,
    ) -> Result<(), EngineError> {
        self.set_key(key);
        self.value.clear();
        self.value.resize(bytes, b'x');
        t.insert(&self.tables[table], &self.key, &self.value)
    }

    /// Waits until at most so many commits are unsettled.
    pub fn settle(&mut self, unsettled: usize) -> Result<u64, EngineError> {
        let mut settled = 0;
        while let Some(ticket) = self.tickets.front() {
            if self.tickets.len() > unsettled {
                ticket.wait()?;
            } else if !ticket.try_wait()? {
                break;
            }
            self.tickets.pop_front();
            settled += 1;
        }
        Ok(settled)
    }
}

fn read(row: &[u8], (at, bytes): (usize, usize)) -> i64 {
    let mut wide = [0; 8];
    wide[8 - bytes..].copy_from_slice(&row[at..at + bytes]);
    i64::from_le_bytes(wide) >> (64 - 8 * bytes)
}

fn add(row: &mut [u8], (at, bytes): (usize, usize), number: i64) {
    let new = read(row, (at, bytes)).wrapping_add(number).to_le_bytes();
    row[at..at + bytes].copy_from_slice(&new[..bytes]);
}
