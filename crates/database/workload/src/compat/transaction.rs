//! The kit's transactions: its statements, one by one, in its order.

use std::sync::Arc;

use iostrata_database::target::{Access, ColumnType, Op, OpId, Rows, Session, TargetError, Value};
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::compat::CompatSpec;
use crate::compat::schema::KitTable;
use crate::slots::Conclusion;
use crate::tpcc::DISTRICTS;
use crate::tpcc::draw::{self, between, last_name, percent};

// The statements that the kit sends, with `#` for the number of the set of tables.

/// A statement of a set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Begin,
    // New order.
    Head,
    District,
    NextNumber,
    InsertOrder,
    InsertNewOrder,
    Item,
    /// Of district 1; those of the others follow at the end.
    UpdateStock,
    InsertLine,
    // Payment.
    PayWarehouse,
    Warehouse,
    PayDistrict,
    DistrictName,
    CountNames,
    Names,
    Customer,
    Data,
    PayWithData,
    Pay,
    InsertHistory,
    // Order status.
    StatusNames,
    Status,
    LastOrder,
    Lines,
    // Delivery.
    Oldest,
    DeleteNewOrder,
    OrderCustomer,
    Carrier,
    DeliverLines,
    SumLines,
    Deliver,
    // Stock level.
    Number,
    RecentItems,
    Short,
    /// Of ten districts.
    Stock,
}

const DISTRICT_COUNT: usize = 10;
/// Statements of a set.
const STATEMENTS: usize = Statement::Stock as usize + DISTRICT_COUNT;

impl Statement {
    /// The operation of a set of tables, counted from 0.
    pub fn of(self, set: u32) -> OpId {
        OpId(set as usize * STATEMENTS + self as usize)
    }

    /// The stock of a line, with the text for a district, counted from 1.
    pub fn stock(set: u32, district: i64) -> OpId {
        OpId(Self::Stock.of(set).0 + district as usize - 1)
    }
}

const INT: ColumnType = ColumnType::Int { bytes: 8 };
const MONEY: ColumnType = ColumnType::Decimal { digits: 12, scale: 2 };
const TEXT: ColumnType = ColumnType::Varchar(500);

type KitStatement = (Statement, KitTable, &'static str, &'static [ColumnType]);

/// Every statement but the ten of the stock.
const ALL: [KitStatement; STATEMENTS - DISTRICT_COUNT] = {
    use KitTable as T;
    use Statement as S;
    [
        (S::Begin, T::Warehouse, "BEGIN", &[]),
        (
            S::Head,
            T::Customer,
            "SELECT c_discount, c_last, c_credit, w_tax \
            FROM customer#, warehouse# WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? \
            AND c_id = ?",
            &[MONEY, TEXT, TEXT, MONEY],
        ),
        (
            S::District,
            T::District,
            "SELECT d_next_o_id, d_tax FROM district# \
            WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            &[INT, MONEY],
        ),
        (
            S::NextNumber,
            T::District,
            "UPDATE district# SET d_next_o_id = ? \
            WHERE d_id = ? AND d_w_id= ?",
            &[],
        ),
        (
            S::InsertOrder,
            T::Orders,
            "INSERT INTO orders# (o_id, o_d_id, o_w_id, o_c_id, \
            o_entry_d, o_ol_cnt, o_all_local) VALUES (?,?,?,?,NOW(),?,?)",
            &[],
        ),
        (
            S::InsertNewOrder,
            T::NewOrders,
            "INSERT INTO new_orders# (no_o_id, no_d_id, \
            no_w_id) VALUES (?,?,?)",
            &[],
        ),
        (
            S::Item,
            T::Item,
            "SELECT i_price, i_name, i_data FROM item# WHERE i_id = ?",
            &[MONEY, TEXT, TEXT],
        ),
        (
            S::UpdateStock,
            T::Stock,
            "UPDATE stock# SET s_quantity = ? \
            WHERE s_i_id = ? AND s_w_id= ?",
            &[],
        ),
        (
            S::InsertLine,
            T::OrderLine,
            "INSERT INTO order_line# (ol_o_id, ol_d_id, ol_w_id, \
            ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
            VALUES (?,?,?,?,?,?,?,?,?)",
            &[],
        ),
        (
            S::PayWarehouse,
            T::Warehouse,
            "UPDATE warehouse# SET w_ytd = w_ytd + ? \
            WHERE w_id = ?",
            &[],
        ),
        (
            S::Warehouse,
            T::Warehouse,
            "SELECT w_street_1, w_street_2, w_city, w_state, \
            w_zip, w_name FROM warehouse# WHERE w_id = ?",
            &[TEXT; 6],
        ),
        (
            S::PayDistrict,
            T::District,
            "UPDATE district# SET d_ytd = d_ytd + ? \
            WHERE d_w_id = ? AND d_id= ?",
            &[],
        ),
        (
            S::DistrictName,
            T::District,
            "SELECT d_street_1, d_street_2, d_city, d_state, \
            d_zip, d_name FROM district# WHERE d_w_id = ? AND d_id = ?",
            &[TEXT; 6],
        ),
        (
            S::CountNames,
            T::Customer,
            "SELECT count(c_id) namecnt FROM customer# \
            WHERE c_w_id = ? AND c_d_id= ? AND c_last=?",
            &[INT],
        ),
        (
            S::Names,
            T::Customer,
            "SELECT c_id FROM customer# \
            WHERE c_w_id = ? AND c_d_id= ? AND c_last=? ORDER BY c_first",
            &[INT],
        ),
        (
            S::Customer,
            T::Customer,
            "SELECT c_first, c_middle, c_last, c_street_1, \
            c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, c_discount, \
            c_balance, c_ytd_payment, c_since FROM customer# \
            WHERE c_w_id = ? AND c_d_id= ? AND c_id=? FOR UPDATE",
            &[
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                TEXT,
                INT,
                MONEY,
                MONEY,
                MONEY,
                ColumnType::DateTime,
            ],
        ),
        (
            S::Data,
            T::Customer,
            "SELECT c_data FROM customer# \
            WHERE c_w_id = ? AND c_d_id=? AND c_id= ?",
            &[TEXT],
        ),
        (
            S::PayWithData,
            T::Customer,
            "UPDATE customer# SET c_balance=?, c_ytd_payment=?, \
            c_data=? WHERE c_w_id = ? AND c_d_id=? AND c_id=?",
            &[],
        ),
        (
            S::Pay,
            T::Customer,
            "UPDATE customer# SET c_balance=?, c_ytd_payment=? \
            WHERE c_w_id = ? AND c_d_id=? AND c_id=?",
            &[],
        ),
        (
            S::InsertHistory,
            T::History,
            "INSERT INTO history# (h_c_d_id, h_c_w_id, h_c_id, \
            h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?,?,?,?,?,NOW(),?,?)",
            &[],
        ),
        (
            S::StatusNames,
            T::Customer,
            "SELECT c_balance, c_first, c_middle, c_id \
            FROM customer# WHERE c_w_id = ? AND c_d_id= ? AND c_last=? ORDER BY c_first",
            &[MONEY, TEXT, TEXT, INT],
        ),
        (
            S::Status,
            T::Customer,
            "SELECT c_balance, c_first, c_middle, c_last \
            FROM customer# WHERE c_w_id = ? AND c_d_id=? AND c_id=?",
            &[MONEY, TEXT, TEXT, TEXT],
        ),
        (
            S::LastOrder,
            T::Orders,
            "SELECT o_id, o_carrier_id, o_entry_d FROM orders# \
            WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC",
            &[INT, INT, ColumnType::DateTime],
        ),
        (
            S::Lines,
            T::OrderLine,
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
            ol_delivery_d FROM order_line# WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            &[INT, INT, INT, MONEY, ColumnType::DateTime],
        ),
        (
            S::Oldest,
            T::NewOrders,
            "SELECT no_o_id FROM new_orders# WHERE no_d_id = ? \
            AND no_w_id = ? ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE",
            &[INT],
        ),
        (
            S::DeleteNewOrder,
            T::NewOrders,
            "DELETE FROM new_orders# WHERE no_o_id = ? \
            AND no_d_id = ? AND no_w_id = ?",
            &[],
        ),
        (
            S::OrderCustomer,
            T::Orders,
            "SELECT o_c_id FROM orders# WHERE o_id = ? \
            AND o_d_id = ? AND o_w_id = ?",
            &[INT],
        ),
        (
            S::Carrier,
            T::Orders,
            "UPDATE orders# SET o_carrier_id = ? WHERE o_id = ? \
            AND o_d_id = ? AND o_w_id = ?",
            &[],
        ),
        (
            S::DeliverLines,
            T::OrderLine,
            "UPDATE order_line# SET ol_delivery_d = NOW() \
            WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
            &[],
        ),
        (
            S::SumLines,
            T::OrderLine,
            "SELECT SUM(ol_amount) sm FROM order_line# \
            WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
            &[MONEY],
        ),
        (
            S::Deliver,
            T::Customer,
            "UPDATE customer# SET c_balance = c_balance + ?, \
            c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = ? AND c_d_id = ? AND c_w_id = ?",
            &[],
        ),
        (
            S::Number,
            T::District,
            "SELECT d_next_o_id FROM district# WHERE d_id = ? \
            AND d_w_id= ?",
            &[INT],
        ),
        (
            S::RecentItems,
            T::OrderLine,
            "SELECT DISTINCT ol_i_id FROM order_line# \
            WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ?",
            &[INT],
        ),
        (
            S::Short,
            T::Stock,
            "SELECT count(*) FROM stock# WHERE s_w_id = ? AND s_i_id = ? \
            AND s_quantity < ?",
            &[INT],
        ),
    ]
};

/// The operations of so many sets of tables.
pub(super) fn ops(sets: u32) -> Arc<[Op]> {
    (0..sets).flat_map(ops_of).collect()
}

fn ops_of(set: u32) -> impl Iterator<Item = Op> {
    let op = move |name, table: KitTable, sql: &str, gives: &[ColumnType]| Op {
        name,
        table: table.number(set),
        access: Access::Statement {
            sql: sql.replace('#', &(set + 1).to_string()),
            gives: gives.to_vec(),
        },
    };
    let stock = move |district| {
        let sql = format!(
            "SELECT s_quantity, s_data, s_dist_{district:02} s_dist FROM stock# \
             WHERE s_i_id = ? AND s_w_id= ? FOR UPDATE"
        );
        op("stock", KitTable::Stock, &sql, &[INT, TEXT, TEXT])
    };
    let all = ALL.iter().map(move |(_, table, sql, gives)| op("statement", *table, sql, gives));
    all.chain((1..=DISTRICT_COUNT).map(stock))
}

/// An item that does not exist.
const UNUSED_ITEM: i64 = -1;
/// Characters of a customer's data at most.
const DATA_MAX: usize = 500;

/// The kind that the kit draws: of 23, ten orders, ten payments, one of each of the others.
pub(super) fn kind(random: &mut Random) -> OpKind {
    match between(random, 1, 23) {
        1..=10 => OpKind::NewOrder,
        11..=20 => OpKind::Payment,
        21 => OpKind::OrderStatus,
        22 => OpKind::Delivery,
        _ => OpKind::StockLevel,
    }
}

/// NURand with a constant that is drawn again at each call: nearly uniform.
fn nurand(random: &mut Random, a: i64, least: i64, most: i64) -> i64 {
    let constant = between(random, 0, a);
    draw::nurand(random, (a, constant), least, most)
}

/// Runs transactions in one session.
pub struct KitRunner {
    spec: CompatSpec,
    rows: Rows,
    text: Vec<u8>,
}

/// Where a transaction takes place.
#[derive(Clone, Copy)]
struct Place {
    set: u32,
    warehouse: i64,
    district: i64,
}

impl KitRunner {
    pub fn new(spec: CompatSpec) -> Self {
        Self { spec, rows: Rows::default(), text: Vec::new() }
    }

    pub fn run(
        &mut self,
        session: &mut dyn Session,
        kind: OpKind,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let at = Place {
            set: random.below(self.spec.tables.into()) as u32,
            warehouse: between(random, 1, self.spec.scale),
            district: between(random, 1, DISTRICTS),
        };
        self.ask(session, at, Statement::Begin, &[])?;
        match kind {
            OpKind::Payment => self.payment(session, at, random)?,
            OpKind::OrderStatus => self.order_status(session, at, random)?,
            OpKind::Delivery => self.delivery(session, at, random)?,
            OpKind::StockLevel => self.stock_level(session, at, random)?,
            _ => return self.new_order(session, at, random),
        }
        Ok(Conclusion::Commit)
    }

    /// Runs a statement with numbers; its rows stay.
    fn ask(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        statement: Statement,
        args: &[i64],
    ) -> Result<(), TargetError> {
        let mut values = [Value::Null; 8];
        values.iter_mut().zip(args).for_each(|(value, arg)| *value = (*arg).into());
        session.run(statement.of(at.set), &values[..args.len()], &mut self.rows)?;
        Ok(())
    }

    /// A value of the only row; 0 where it is missing.
    fn int(&self, column: usize) -> i64 {
        if self.rows.is_empty() || self.rows.get(0, column).is_null() {
            return 0;
        }
        self.rows.get(0, column).int()
    }

    fn new_order(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let Place { set, warehouse: w, district: d } = at;
        let customer = nurand(random, 1_023, 1, self.spec.customers);
        let count = between(random, 5, 15);
        let is_bad = percent(random, 1);
        let mut is_local = true;
        let mut lines = [(0, 0); 15];
        for (line, number) in lines.iter_mut().zip(1..=count) {
            let item = nurand(random, 8_191, 1, self.spec.items);
            let is_unused = is_bad && number == count - 1;
            // Another warehouse is looked for, and the same one is found.
            is_local &= !percent(random, 1);
            *line = (if is_unused { UNUSED_ITEM } else { item }, between(random, 1, 10));
        }
        self.ask(session, at, Statement::Head, &[w, d, customer])?;
        let (discount, w_tax) = (self.int(0), self.int(3));
        self.ask(session, at, Statement::District, &[w, d])?;
        let (order, d_tax) = (self.int(0), self.int(1));
        self.ask(session, at, Statement::NextNumber, &[order + 1, d, w])?;
        let args = [order, d, w, customer, count, i64::from(is_local)];
        self.ask(session, at, Statement::InsertOrder, &args)?;
        self.ask(session, at, Statement::InsertNewOrder, &[order, d, w])?;
        let factor = (100 + w_tax + d_tax) * (100 - discount);
        for ((item, quantity), number) in lines.into_iter().zip(1..=count) {
            self.ask(session, at, Statement::Item, &[item])?;
            if self.rows.is_empty() {
                return Ok(Conclusion::RollBack);
            }
            let amount = quantity * self.int(0) * factor / 1_000_000;
            let args = [item, w].map(Value::Int);
            session.run(Statement::stock(set, d), &args, &mut self.rows)?;
            let before = self.int(0);
            let left = before - quantity + if before > quantity { 0 } else { 91 };
            self.text.clear();
            if !self.rows.is_empty() {
                self.text.extend_from_slice(self.rows.get(0, 2).text());
            }
            self.ask(session, at, Statement::UpdateStock, &[left, item, w])?;
            let numbers = [order, d, w, number, item, w, quantity, amount].map(Value::Int);
            let [a, b, c, e, f, g, h, i] = numbers;
            let args = [a, b, c, e, f, g, h, i, Value::Text(&self.text)];
            session.run(Statement::InsertLine.of(set), &args, &mut self.rows)?;
        }
        Ok(Conclusion::Commit)
    }

    /// Looks for the middle customer of a random name, or for one by number.
    fn customer(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        (id, by_name): (i64, Option<i64>),
        (names, column): (Statement, usize),
    ) -> Result<i64, TargetError> {
        let Some(name) = by_name else { return Ok(id) };
        self.text.clear();
        last_name(&mut self.text, name);
        let args = [at.warehouse.into(), at.district.into(), Value::Text(&self.text)];
        session.run(Statement::CountNames.of(at.set), &args, &mut self.rows)?;
        session.run(names.of(at.set), &args, &mut self.rows)?;
        let middle = (self.rows.len() / 2).min(self.rows.len().saturating_sub(1));
        Ok(if self.rows.is_empty() { id } else { self.rows.get(middle, column).int() })
    }

    fn payment(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let Place { set, warehouse: w, district: d } = at;
        let id = nurand(random, 1_023, 1, self.spec.customers);
        let amount = between(random, 1, 5_000);
        let name = nurand(random, 255, 0, 999);
        let by_name = percent(random, 60).then_some(name);
        let c_d = if percent(random, 85) { d } else { between(random, 1, DISTRICTS) };
        self.ask(session, at, Statement::PayWarehouse, &[amount, w])?;
        self.ask(session, at, Statement::Warehouse, &[w])?;
        let mut data = String::from_utf8_lossy(self.rows.get(0, 5).text()).into_owned();
        self.ask(session, at, Statement::PayDistrict, &[amount, w, d])?;
        self.ask(session, at, Statement::DistrictName, &[w, d])?;
        let district = String::from_utf8_lossy(self.rows.get(0, 5).text()).into_owned();
        data = format!("{data:>10} {district:>10}    ");
        let of = Place { district: c_d, ..at };
        let id = self.customer(session, of, (id, by_name), (Statement::Names, 0))?;
        self.ask(session, at, Statement::Customer, &[w, c_d, id])?;
        let (balance, ytd) = (self.int(12) - 100 * amount, self.int(13) + 100 * amount);
        let (balance, ytd) = (money(balance), money(ytd));
        let is_bad = !self.rows.is_empty() && self.rows.get(0, 9).text() == b"BC";
        let key = [w, c_d, id].map(Value::Int);
        if is_bad {
            self.ask(session, at, Statement::Data, &[w, c_d, id])?;
            let note = format!("| {id:4} {c_d:2} {w:4} {d:2} {w:4} ${amount:7}.00 ");
            self.text.clear();
            self.text.extend_from_slice(note.as_bytes());
            self.text.extend_from_slice(self.rows.get(0, 0).text());
            self.text.truncate(DATA_MAX);
            let text = Value::Text(&self.text);
            let args = [balance.as_str().into(), ytd.as_str().into(), text, key[0], key[1], key[2]];
            session.run(Statement::PayWithData.of(set), &args, &mut self.rows)?;
        } else {
            let args = [balance.as_str().into(), ytd.as_str().into(), key[0], key[1], key[2]];
            session.run(Statement::Pay.of(set), &args, &mut self.rows)?;
        }
        let [a, b, c, e, f, g] = [c_d, w, id, d, w, amount].map(Value::Int);
        let args = [a, b, c, e, f, g, data.as_str().into()];
        session.run(Statement::InsertHistory.of(set), &args, &mut self.rows)?;
        Ok(())
    }

    fn order_status(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let Place { warehouse: w, district: d, .. } = at;
        let id = nurand(random, 1_023, 1, self.spec.customers);
        let name = nurand(random, 255, 0, 999);
        let by_name = percent(random, 60).then_some(name);
        let id = self.customer(session, at, (id, by_name), (Statement::StatusNames, 3))?;
        if by_name.is_none() {
            self.ask(session, at, Statement::Status, &[w, d, id])?;
        }
        self.ask(session, at, Statement::LastOrder, &[w, d, id])?;
        // The district's number in the place of the order's.
        self.ask(session, at, Statement::Lines, &[w, d, d])
    }

    fn delivery(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let w = at.warehouse;
        let carrier = between(random, 1, 10);
        for d in 1..=DISTRICTS {
            self.ask(session, at, Statement::Oldest, &[d, w])?;
            if self.rows.is_empty() {
                continue;
            }
            let order = self.int(0);
            self.ask(session, at, Statement::DeleteNewOrder, &[order, d, w])?;
            self.ask(session, at, Statement::OrderCustomer, &[order, d, w])?;
            let customer = self.int(0);
            self.ask(session, at, Statement::Carrier, &[carrier, order, d, w])?;
            self.ask(session, at, Statement::DeliverLines, &[order, d, w])?;
            self.ask(session, at, Statement::SumLines, &[order, d, w])?;
            let sum = money(self.int(0));
            let args = [sum.as_str().into(), customer.into(), d.into(), w.into()];
            session.run(Statement::Deliver.of(at.set), &args, &mut self.rows)?;
        }
        Ok(())
    }

    fn stock_level(
        &mut self,
        session: &mut dyn Session,
        at: Place,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let Place { warehouse: w, district: d, .. } = at;
        let level = between(random, 10, 20);
        self.ask(session, at, Statement::Number, &[d, w])?;
        let next = self.int(0);
        self.ask(session, at, Statement::RecentItems, &[w, d, next, next - 20])?;
        let items: Vec<i64> = (0..self.rows.len()).map(|row| self.rows.get(row, 0).int()).collect();
        items
            .into_iter()
            .try_for_each(|item| self.ask(session, at, Statement::Short, &[w, item, level]))
    }
}

/// Cents as an amount.
fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

#[cfg(test)]
mod statements_tests {
    use super::*;

    #[test]
    fn every_statement_is_at_its_place() {
        for (place, (statement, ..)) in ALL.iter().enumerate() {
            assert_eq!(*statement as usize, place, "{statement:?}");
        }
        let ops = ops(2);
        assert_eq!(ops.len(), 2 * STATEMENTS);
        let Access::Statement { sql, .. } = &ops[Statement::stock(1, 10).0].access else {
            panic!("not a statement");
        };
        assert!(sql.contains("s_dist_10") && sql.contains("stock2 "), "{sql}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        let all = [-1_000, -5, 0, 123_456].map(money);
        assert_eq!(all, ["-10.00", "-0.05", "0.00", "1234.56"]);
    }

    #[test]
    fn kinds_have_the_kit_s_shares() {
        let mut random = Random::new(1);
        let orders = (0..230_000).filter(|_| kind(&mut random) == OpKind::NewOrder).count() as f64;
        assert!((orders / 100_000.0 - 1.0).abs() < 0.02, "{orders}");
    }
}
