//! The transaction as declared operations of a session.

use std::collections::VecDeque;

use iostrata_database::target::{
    Access, Assign, Change, Op, OpId, Rows, Session, TargetError, Ticket, Trouble, Value,
};

use crate::draw::OrderDraw;
use crate::tables::{
    BALANCE, CUSTOMER, DISTRICT, HISTORY, ITEM, LINE, NEW_ORDER, NEXT_ORDER, OPEN_ORDERS, ORDER,
    ORDERED, PAID, PAYMENTS, QUANTITY, SOLD, STOCK, WAREHOUSE,
};

const ORDER_OPS: usize = 12;

pub fn ops() -> [Op; ORDER_OPS] {
    let op = |name, table, access| Op { name, table, access };
    let get = |columns: &[usize]| Access::Get { columns: columns.to_vec(), locks: false };
    let modify = |prefix, set: &[(usize, Change)], returns: &[usize]| Access::Modify {
        prefix,
        set: set
            .iter()
            .map(|(column, change)| Assign { column: *column, change: *change })
            .collect(),
        returns: returns.to_vec(),
    };
    let take = Change::SubtractRefill { least: 10, by: 91 };
    let paid = [(BALANCE, Change::Add), (PAID, Change::Add), (PAYMENTS, Change::AddConst(1))];
    let sold = [(QUANTITY, take), (SOLD, Change::Add), (ORDERED, Change::AddConst(1))];
    [
        op(
            "next order",
            DISTRICT,
            modify(2, &[(NEXT_ORDER, Change::AddConst(1))], &[NEXT_ORDER, 8]),
        ),
        op("warehouse", WAREHOUSE, get(&[7])),
        op("customer", CUSTOMER, get(&[3, 5, 13, 15])),
        op("insert order", ORDER, Access::Insert),
        op("insert new order", NEW_ORDER, Access::Insert),
        op("deliver", NEW_ORDER, Access::Delete),
        op("order", ORDER, get(&[3, 4, 5])),
        op("items", ITEM, get(&[0, 2, 3, 4])),
        op("take from stock", STOCK, modify(2, &sold, &[QUANTITY, 5, 16])),
        op("insert lines", LINE, Access::Insert),
        op("pay", CUSTOMER, modify(3, &paid, &[BALANCE])),
        op("insert history", HISTORY, Access::Insert),
    ]
}

/// The operation that reads lines, behind the others.
pub fn lines() -> Op {
    let access = Access::Get { columns: vec![4, 5, 7, 8], locks: false };
    Op { name: "lines", table: LINE, access }
}

/// One session with its unsettled commits.
pub struct Through {
    pub session: Box<dyn Session>,
    pub tickets: VecDeque<Ticket>,
    pub out: Rows,
    pub seen: i64,
}

impl Through {
    /// Runs the transaction until it is committed.
    pub fn transact(&mut self, drawn: &OrderDraw) -> Result<(), TargetError> {
        loop {
            self.session.begin()?;
            match self.body(drawn).and_then(|()| self.session.commit()) {
                Ok(ticket) => {
                    self.tickets.push_back(ticket);
                    return Ok(());
                }
                Err(error) if error.trouble == Trouble::Retry => std::thread::yield_now(),
                Err(error) => return Err(error),
            }
        }
    }

    fn body(&mut self, drawn: &OrderDraw) -> Result<(), TargetError> {
        let (w, d) = drawn.place;
        self.run(0, &[w, d])?;
        let number = self.out.get(0, 0).int();
        self.run(1, &[w])?;
        self.run(2, &[w, d, drawn.customer])?;
        let mut order = [w, d, number, drawn.customer, 1, 0, 6, 1].map(Value::Int);
        order[5] = Value::Null;
        self.values(3, &order)?;
        self.run(4, &[w, d, number])?;
        let delivered = number - OPEN_ORDERS;
        let deleted = self.run(5, &[w, d, delivered])?;
        assert_eq!(deleted, 1, "order {delivered} is there");
        self.run(6, &[w, d, delivered])?;
        self.run(7, &drawn.items)?;
        let mut stock = [0; 24];
        for (row, item) in stock.chunks_exact_mut(4).zip(drawn.items) {
            row.copy_from_slice(&[w, item, 5, 5]);
        }
        let taken = self.run(8, &stock)?;
        assert_eq!(taken, 6, "every item is in stock");
        let mut lines = [Value::Null; 60];
        for (at, (row, item)) in lines.chunks_exact_mut(10).zip(drawn.items).enumerate() {
            let numbers = [w, d, number, at as i64, item, w, 0, 5, 50].map(Value::Int);
            row[..9].copy_from_slice(&numbers);
            row[6] = Value::Null;
            row[9] = Value::Text(b"xxxxxxxxxxxxxxxxxxxxxxxx");
        }
        self.values(9, &lines)?;
        self.run(10, &[w, d, drawn.payer, -50, 50])?;
        let mut history = [drawn.payer, d, w, d, w, 1, 50, 0].map(Value::Int);
        history[7] = Value::Text(b"xxxxxxxxxxxxxxxxxxx");
        self.values(11, &history)?;
        let earlier = number - drawn.back;
        self.run(6, &[w, d, earlier])?;
        let mut keys = [0; 24];
        for (at, row) in keys.chunks_exact_mut(4).enumerate() {
            row.copy_from_slice(&[w, d, earlier, at as i64]);
        }
        let found = self.run(12, &keys)?;
        assert_eq!(found, 6, "lines of order {earlier}");
        self.seen = self.seen.wrapping_add(self.out.get(0, 0).int());
        Ok(())
    }

    fn run(&mut self, op: usize, args: &[i64]) -> Result<u64, TargetError> {
        let mut values = [Value::Null; 24];
        for (value, number) in values.iter_mut().zip(args) {
            *value = Value::Int(*number);
        }
        self.session.run(OpId(op), &values[..args.len()], &mut self.out)
    }

    fn values(&mut self, op: usize, args: &[Value<'_>]) -> Result<u64, TargetError> {
        self.session.run(OpId(op), args, &mut self.out)
    }

    /// Waits until at most so many commits are unsettled.
    pub fn settle(&mut self, unsettled: usize) -> Result<u64, TargetError> {
        let mut settled = 0;
        while let Some(ticket) = self.tickets.front() {
            let waits = self.tickets.len() > unsettled;
            if !self.session.settle(*ticket, waits)? {
                break;
            }
            self.tickets.pop_front();
            settled += 1;
        }
        Ok(settled)
    }
}
