//! The five transactions (clauses 2.4 to 2.8) over a session, up to the commit.
//!
//! Invariant: rows that transactions meet in are locked in one order: stock (by warehouse and
//! item), new orders, orders and lines, customer, district, warehouse. The specification leaves the
//! order within a transaction to the implementation. Nothing is retried here.

use iostrata_database::target::{OpId, Rows, Session, TargetError, Trouble, Value};

use crate::slots::Conclusion;
use crate::tpcc::draw::is_original;
use crate::tpcc::input::{Customer, Input, LINES_MAX, OrderItem, UNUSED_ITEM};
use crate::tpcc::schema::{DISTRICTS, Ops};

/// Orders back that a stock level reads.
const RECENT_ORDERS: i64 = 20;

/// What a transaction returns to its terminal, as far as it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Of an order: in hundredths of cents of its amount, taxes and discount included.
    pub total: i64,
    /// Of an order: its number.
    pub order: i64,
    /// Lines of which item and stock are original.
    pub brand_lines: u32,
    /// Of a payment or a status: the customer's balance in cents.
    pub balance: i64,
    /// Of a delivery: districts without an order to deliver.
    pub skipped: u32,
    /// Of a stock level: items that run short.
    pub short: i64,
}

/// Runs transactions in one session.
#[derive(Debug)]
pub(crate) struct Runner {
    ops: Ops,
    rows: Rows,
    second: Rows,
    text: Vec<u8>,
}

/// What is known of a line when its order is written.
#[derive(Clone, Copy, Debug, Default)]
struct LinePrice {
    line: OrderItem,
    price: i64,
    /// Where in the stock's rows it is.
    stock: usize,
}

impl Runner {
    /// For the sessions that were opened with these operations.
    pub(crate) fn new(ops: Ops) -> Self {
        Self { ops, rows: Rows::default(), second: Rows::default(), text: Vec::new() }
    }

    /// Runs a transaction at this moment, in seconds since 1970, up to its end.
    ///
    /// # Errors
    /// The target's error; rows that should be there and are not.
    pub fn run(
        &mut self,
        session: &mut dyn Session,
        input: &Input,
        now_s: i64,
    ) -> Result<(Conclusion, Output), TargetError> {
        session.begin()?;
        let output = match input {
            Input::NewOrder { place, customer, lines } => {
                return self.new_order(session, *place, *customer, lines, now_s);
            }
            Input::Payment { place, of, customer, amount } => {
                self.payment(session, (*place, *of), *customer, *amount, now_s)
            }
            Input::OrderStatus { place, customer } => self.order_status(session, *place, *customer),
            Input::Delivery { warehouse, carrier } => {
                self.delivery(session, *warehouse, *carrier, now_s)
            }
            Input::StockLevel { place, threshold } => self.stock_level(session, *place, *threshold),
        };
        output.map(|output| (Conclusion::Commit, output))
    }

    fn new_order(
        &mut self,
        session: &mut dyn Session,
        (w, d): (i64, i64),
        customer: i64,
        lines: &[OrderItem],
        now_s: i64,
    ) -> Result<(Conclusion, Output), TargetError> {
        let discount = self.one(session, self.ops.order.customer, &[w, d, customer])?.int();
        let w_tax = self.one(session, self.ops.order.warehouse_tax, &[w])?.int();
        let is_rolled_back = lines.last().is_some_and(|line| line.item == UNUSED_ITEM);
        let real = &lines[..lines.len() - usize::from(is_rolled_back)];
        let mut priced = [LinePrice::default(); LINES_MAX];
        let found = self.priced(session, lines, real, &mut priced)?;
        if found < lines.len() && !is_rolled_back {
            return Err(missing("an item", "item"));
        }
        let priced = &mut priced[..real.len()];
        let brand_lines = self.take_stock(session, (w, d), priced)?;
        let returned = self.one(session, self.ops.order.next_number, &[w, d])?.int();
        let (d_tax, order) = (returned, self.rows.get(0, 1).int());
        let is_local = real.iter().all(|line| line.supply == w);
        let head = [order, d, w, customer, now_s].map(Value::Int);
        let tail = [Value::Null, Value::Int(lines.len() as i64), Value::Int(is_local.into())];
        let args: [Value<'_>; 8] = std::array::from_fn(|at| match at {
            0..5 => head[at],
            _ => tail[at - 5],
        });
        session.run(self.ops.order.insert_order, &args, &mut self.rows)?;
        let args = [order, d, w].map(Value::Int);
        session.run(self.ops.order.insert_new_order, &args, &mut self.rows)?;
        let amount = self.insert_lines(session, (w, d, order), priced)?;
        let work = if is_rolled_back { Conclusion::RollBack } else { Conclusion::Commit };
        let total = amount * (10_000 - discount) / 10_000 * (10_000 + w_tax + d_tax) / 100;
        Ok((work, Output { total, order, brand_lines, ..Output::default() }))
    }

    /// Looks up the items and puts the lines in the order of their stock. Gives how many of all
    /// lines have an item.
    fn priced(
        &mut self,
        session: &mut dyn Session,
        lines: &[OrderItem],
        real: &[OrderItem],
        priced: &mut [LinePrice; LINES_MAX],
    ) -> Result<usize, TargetError> {
        let mut args = [Value::Null; LINES_MAX];
        args.iter_mut().zip(lines).for_each(|(arg, line)| *arg = line.item.into());
        session.run(self.ops.order.items, &args[..lines.len()], &mut self.rows)?;
        let mut found = 0;
        for line in lines {
            found += usize::from(self.rows.find(&[line.item]).is_some());
        }
        for (at, line) in priced.iter_mut().zip(real) {
            if let Some(row) = self.rows.find(&[line.item]) {
                *at = LinePrice { line: *line, price: self.rows.get(row, 1).int(), stock: 0 };
            }
        }
        Ok(found)
    }

    /// Takes the items from stock. Gives the number of lines of which both data are original.
    fn take_stock(
        &mut self,
        session: &mut dyn Session,
        (w, d): (i64, i64),
        priced: &mut [LinePrice],
    ) -> Result<u32, TargetError> {
        let mut order: [usize; LINES_MAX] = std::array::from_fn(|at| at);
        let order = &mut order[..priced.len()];
        order.sort_unstable_by_key(|at| (priced[*at].line.supply, priced[*at].line.item));
        let mut args = [Value::Null; 5 * LINES_MAX];
        for (row, at) in args.chunks_exact_mut(5).zip(order.iter()) {
            let OrderItem { item, supply, quantity } = priced[*at].line;
            let numbers = [supply, item, quantity, quantity, i64::from(supply != w)];
            row.iter_mut().zip(numbers).for_each(|(arg, number)| *arg = number.into());
        }
        let op = self.ops.order.take_stock[(d - 1) as usize];
        let taken = session.run(op, &args[..5 * priced.len()], &mut self.second)?;
        if taken < priced.len() as u64 {
            return Err(missing("a row", "stock"));
        }
        let mut brand_lines = 0;
        for (stock, at) in order.iter().enumerate() {
            priced[*at].stock = stock;
            let item = self.rows.find(&[priced[*at].line.item]);
            let is_item = item.is_some_and(|row| is_original(self.rows.get(row, 3).text()));
            let is_brand = is_item && is_original(self.second.get(stock, 3).text());
            brand_lines += u32::from(is_brand);
        }
        Ok(brand_lines)
    }

    /// Writes the lines. Gives the sum of their amounts.
    fn insert_lines(
        &mut self,
        session: &mut dyn Session,
        (w, d, order): (i64, i64, i64),
        priced: &[LinePrice],
    ) -> Result<i64, TargetError> {
        let mut sum = 0;
        let mut args = [Value::Null; 10 * LINES_MAX];
        for ((row, one), number) in args.chunks_exact_mut(10).zip(priced).zip(1..) {
            let LinePrice { line, price, stock } = *one;
            let amount = line.quantity * price;
            sum += amount;
            let head = [order, d, w, number, line.item, line.supply];
            row.iter_mut().zip(head).for_each(|(arg, number)| *arg = number.into());
            row[7] = line.quantity.into();
            row[8] = amount.into();
            row[9] = self.second.get(stock, 4);
        }
        let args = &args[..10 * priced.len()];
        session.run(self.ops.order.insert_lines, args, &mut self.rows)?;
        Ok(sum)
    }

    fn payment(
        &mut self,
        session: &mut dyn Session,
        ((w, d), (c_w, c_d)): ((i64, i64), (i64, i64)),
        customer: Customer,
        amount: i64,
        now_s: i64,
    ) -> Result<Output, TargetError> {
        let id = self.customer(session, (c_w, c_d), customer)?;
        let args = [c_w, c_d, id, -amount, amount].map(Value::Int);
        if session.run(self.ops.payment.pay, &args, &mut self.rows)? == 0 {
            return Err(missing("a customer", "customer"));
        }
        let balance = self.rows.get(0, 1).int() - amount;
        if self.rows.get(0, 0).text() == b"BC" {
            let (whole, cents) = (amount / 100, amount % 100);
            let note = format!("{id} {c_d} {c_w} {d} {w} {whole}.{cents:02} ");
            let args = [c_w.into(), c_d.into(), id.into(), note.as_str().into()];
            session.run(self.ops.payment.note, &args, &mut self.rows)?;
        }
        let args = [w, d, amount].map(Value::Int);
        session.run(self.ops.payment.pay_district, &args, &mut self.second)?;
        let args = [w, amount].map(Value::Int);
        session.run(self.ops.payment.pay_warehouse, &args, &mut self.rows)?;
        if self.rows.is_empty() || self.second.is_empty() {
            return Err(missing("a warehouse or district", "district"));
        }
        self.text.clear();
        self.text.extend_from_slice(self.rows.get(0, 0).text());
        self.text.extend_from_slice(b"    ");
        self.text.extend_from_slice(self.second.get(0, 0).text());
        let [a, b, c, e, f, g, h] = [id, c_d, c_w, d, w, now_s, amount].map(Value::Int);
        let args = [a, b, c, e, f, g, h, Value::Text(&self.text)];
        session.run(self.ops.payment.insert_history, &args, &mut self.rows)?;
        Ok(Output { balance, ..Output::default() })
    }

    /// The number of a customer; by name, the one in the middle by first name.
    fn customer(
        &mut self,
        session: &mut dyn Session,
        (w, d): (i64, i64),
        customer: Customer,
    ) -> Result<i64, TargetError> {
        let name = match customer {
            Customer::Id(id) => return Ok(id),
            Customer::Name(name) => name,
        };
        self.text.clear();
        crate::tpcc::draw::last_name(&mut self.text, name);
        let args = [w.into(), d.into(), Value::Text(&self.text)];
        session.run(self.ops.payment.by_name, &args, &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("a customer of a name", "customer"));
        }
        Ok(self.rows.get(self.rows.len().div_ceil(2) - 1, 0).int())
    }

    fn order_status(
        &mut self,
        session: &mut dyn Session,
        (w, d): (i64, i64),
        customer: Customer,
    ) -> Result<Output, TargetError> {
        let id = self.customer(session, (w, d), customer)?;
        let balance = self.one(session, self.ops.status.customer, &[w, d, id])?.int();
        let order = self.one(session, self.ops.status.last_order, &[w, d, id])?.int();
        let args = [w, d, order].map(Value::Int);
        session.run(self.ops.status.lines, &args, &mut self.rows)?;
        Ok(Output { balance, order, ..Output::default() })
    }

    fn delivery(
        &mut self,
        session: &mut dyn Session,
        w: i64,
        carrier: i64,
        now_s: i64,
    ) -> Result<Output, TargetError> {
        const MOST: usize = DISTRICTS as usize;
        let mut orders = [(0, 0); MOST];
        let mut count = 0;
        for d in 1..=DISTRICTS {
            let args = [w, d].map(Value::Int);
            session.run(self.ops.delivery.oldest, &args, &mut self.rows)?;
            if !self.rows.is_empty() {
                orders[count] = (d, self.rows.get(0, 0).int());
                count += 1;
            }
        }
        let skipped = (MOST - count) as u32;
        let orders = &orders[..count];
        if orders.is_empty() {
            return Ok(Output { skipped, ..Output::default() });
        }
        let mut args = [Value::Null; 4 * MOST];
        for (row, (d, order)) in args.chunks_exact_mut(3).zip(orders) {
            row.copy_from_slice(&[w, *d, *order].map(Value::Int));
        }
        let args_of_keys = &args[..3 * count];
        let delete = self.ops.delivery.delete_new_order;
        // They were locked when they were read: less would be a transaction that is not one.
        if session.run(delete, args_of_keys, &mut self.rows)? < count as u64 {
            return Err(missing("an order that was locked", "new_orders"));
        }
        let mut set = |value: i64| {
            for (row, (d, order)) in args.chunks_exact_mut(4).zip(orders) {
                row.copy_from_slice(&[w, *d, *order, value].map(Value::Int));
            }
            args
        };
        let args = &set(carrier)[..4 * count];
        if session.run(self.ops.delivery.order, args, &mut self.second)? < count as u64 {
            return Err(missing("an order that is not delivered", "orders"));
        }
        let args = &set(now_s)[..4 * count];
        session.run(self.ops.delivery.lines, args, &mut self.rows)?;
        let mut sums = [0; MOST + 1];
        for row in 0..self.rows.len() {
            sums[self.rows.get(row, 0).int() as usize] += self.rows.get(row, 1).int();
        }
        let mut args = [Value::Null; 4 * MOST];
        for (row, at) in args.chunks_exact_mut(4).zip(0..count) {
            let (d, customer) = (self.second.get(at, 0).int(), self.second.get(at, 1).int());
            row.copy_from_slice(&[w, d, customer, sums[d as usize]].map(Value::Int));
        }
        session.run(self.ops.delivery.customer, &args[..4 * count], &mut self.rows)?;
        Ok(Output { skipped, ..Output::default() })
    }

    fn stock_level(
        &mut self,
        session: &mut dyn Session,
        (w, d): (i64, i64),
        threshold: i64,
    ) -> Result<Output, TargetError> {
        let next = self.one(session, self.ops.level.next_number, &[w, d])?.int();
        let args = [w, d, next - RECENT_ORDERS, next - 1, threshold];
        let short = self.one(session, self.ops.level.short, &args)?.int();
        Ok(Output { short, ..Output::default() })
    }

    /// The first value of the only row that is there with these arguments; the row stays.
    fn one(
        &mut self,
        session: &mut dyn Session,
        op: OpId,
        args: &[i64],
    ) -> Result<Value<'_>, TargetError> {
        let mut values = [Value::Null; 5];
        values.iter_mut().zip(args).for_each(|(value, arg)| *value = (*arg).into());
        session.run(op, &values[..args.len()], &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("a row", self.ops.all[op.0].name));
        }
        Ok(self.rows.get(0, 0))
    }
}

/// A row that the load made is not there.
fn missing(what: &str, of: &str) -> TargetError {
    TargetError {
        trouble: Trouble::NotReady,
        code: "missing_row".to_owned(),
        target: "the dataset".to_owned(),
        text: format!("{what} of {of} that must be there is not"),
        fix: Some("see `tpcc check`, and load it again with `tpcc prepare --reset`".to_owned()),
    }
}
