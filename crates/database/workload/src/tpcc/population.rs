//! The first rows of every table (clause 4.3.3), warehouse by warehouse, in the order of the keys.
//!
//! Invariant: the same seed gives the same rows, whichever parts are loaded, in whichever order:
//! each part draws from a stream of its own, and orders and their lines from the same one.

use iostrata_database::target::{Rows, Value};
use iostrata_stats::Random;

use crate::tpcc::draw::{self, Constants, between, digits, letters};
use crate::tpcc::schema::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS, TableId, schema};

/// Rows that are made at once.
const BATCH: usize = 256;

/// What decides about every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// Of all random values.
    pub seed: u64,
    /// Of the non-uniform ones; the one for last names is kept with the dataset.
    pub constants: Constants,
    /// When the rows were made, in seconds since 1970.
    pub now_s: i64,
}

impl Population {
    /// What a seed gives.
    pub fn new(seed: u64, now_s: i64) -> Self {
        let mut random = Random::of_stream(seed, u64::MAX);
        Self { seed, constants: Constants::of_load(&mut random), now_s }
    }

    /// The rows of a table for these warehouses; for items, which belong to none, all of them.
    pub fn source(self, table: TableId, warehouses: std::ops::RangeInclusive<i64>) -> RowSource {
        let width = schema().tables[table.number()].columns.len();
        RowSource {
            of: self,
            table,
            width,
            warehouses,
            warehouse: 0,
            next: 0,
            random: Random::new(0),
            orders: Vec::new(),
            text: Vec::new(),
        }
    }

    fn stream(&self, table: TableId, warehouse: i64) -> Random {
        Random::of_stream(self.seed, (table.number() as u64) << 48 | warehouse as u64)
    }
}

/// How many rows a table has for each warehouse, but the lines of orders: of them about this many.
pub fn rows_per_warehouse(table: TableId) -> u64 {
    let rows = match table {
        TableId::Warehouse => 1,
        TableId::District => DISTRICTS,
        TableId::Customer | TableId::History => DISTRICTS * CUSTOMERS,
        TableId::Orders => DISTRICTS * ORDERS,
        TableId::NewOrders => DISTRICTS * (ORDERS + 1 - FIRST_NEW_ORDER),
        TableId::OrderLine => DISTRICTS * ORDERS * 10,
        TableId::Item | TableId::Stock => ITEMS,
        TableId::Dataset => 0,
    };
    rows as u64
}

/// What orders and their lines share.
#[derive(Clone, Copy, Debug)]
struct OrderHead {
    customer: i64,
    lines: i64,
    carrier: i64,
}

/// Yields rows in batches.
#[derive(Clone, Debug)]
pub struct RowSource {
    of: Population,
    table: TableId,
    width: usize,
    warehouses: std::ops::RangeInclusive<i64>,
    /// The present warehouse, 0 before the first.
    warehouse: i64,
    /// The next row of the present warehouse, or the next order of the lines.
    next: i64,
    random: Random,
    /// The orders of the present district.
    orders: Vec<OrderHead>,
    text: Vec<u8>,
}

impl RowSource {
    /// Clears the buffer and puts the next rows in; none when no more are left.
    pub fn fill(&mut self, rows: &mut Rows) {
        rows.clear(self.width);
        while rows.len() < BATCH {
            if self.warehouse == 0 || self.next == self.count() {
                let first = self.warehouse == 0;
                let is_one = self.table == TableId::Item && !first;
                let Some(warehouse) = self.warehouses.next().filter(|_| !is_one) else { return };
                self.warehouse = warehouse;
                self.next = 0;
                self.random = self.of.stream(self.table, warehouse);
            }
            self.row(rows);
            self.next += 1;
        }
    }

    /// Rows of a warehouse; of lines, orders.
    fn count(&self) -> i64 {
        match self.table {
            TableId::OrderLine => DISTRICTS * ORDERS,
            table => rows_per_warehouse(table) as i64,
        }
    }

    fn row(&mut self, rows: &mut Rows) {
        self.text.clear();
        match self.table {
            TableId::Warehouse => self.warehouse(rows),
            TableId::District => self.district(rows),
            TableId::Customer => self.customer(rows),
            TableId::History => self.history(rows),
            TableId::NewOrders => self.new_order(rows),
            TableId::Orders => self.order(rows),
            TableId::OrderLine => self.lines(rows),
            TableId::Item => self.item(rows),
            TableId::Stock => self.stock(rows),
            TableId::Dataset => {}
        }
    }

    /// District, from 1, and place in it, from 1, of the next row of a table with so many per
    /// district.
    fn place(&self, per_district: i64) -> (i64, i64) {
        (self.next / per_district + 1, self.next % per_district + 1)
    }

    /// A text of letters and digits.
    fn letters(&mut self, rows: &mut Rows, least: i64, most: i64) {
        self.text.clear();
        letters(&mut self.random, &mut self.text, least, most);
        rows.push(Value::Text(&self.text));
    }

    fn number(&mut self, rows: &mut Rows, least: i64, most: i64) {
        rows.push(Value::Int(between(&mut self.random, least, most)));
    }

    /// Streets, city, state and zip.
    fn address(&mut self, rows: &mut Rows) {
        for _ in 0..3 {
            self.letters(rows, 10, 20);
        }
        self.letters(rows, 2, 2);
        self.text.clear();
        digits(&mut self.random, &mut self.text, 4);
        self.text.extend_from_slice(b"11111");
        rows.push(Value::Text(&self.text));
    }

    fn warehouse(&mut self, rows: &mut Rows) {
        rows.push(self.warehouse.into());
        self.letters(rows, 6, 10);
        self.address(rows);
        self.number(rows, 0, 2_000);
        rows.push(Value::Int(30_000_000));
    }

    fn district(&mut self, rows: &mut Rows) {
        rows.push(Value::Int(self.next + 1));
        rows.push(self.warehouse.into());
        self.letters(rows, 6, 10);
        self.address(rows);
        self.number(rows, 0, 2_000);
        rows.push(Value::Int(3_000_000));
        rows.push(Value::Int(ORDERS + 1));
    }

    fn customer(&mut self, rows: &mut Rows) {
        let (district, id) = self.place(CUSTOMERS);
        numbers(rows, &[id, district, self.warehouse]);
        self.letters(rows, 8, 16);
        rows.push("OE".into());
        let name = match id {
            1..=1_000 => id - 1,
            _ => self.of.constants.last(&mut self.random),
        };
        self.text.clear();
        draw::last_name(&mut self.text, name);
        rows.push(Value::Text(&self.text));
        self.address(rows);
        self.text.clear();
        digits(&mut self.random, &mut self.text, 16);
        rows.push(Value::Text(&self.text));
        rows.push(Value::Int(self.of.now_s));
        let is_bad = draw::percent(&mut self.random, 10);
        rows.push(if is_bad { "BC" } else { "GC" }.into());
        rows.push(Value::Int(5_000_000));
        self.number(rows, 0, 5_000);
        numbers(rows, &[-1_000, 1_000, 1, 0]);
        self.letters(rows, 300, 500);
    }

    fn history(&mut self, rows: &mut Rows) {
        let (district, customer) = self.place(CUSTOMERS);
        numbers(rows, &[customer, district, self.warehouse, district, self.warehouse]);
        rows.push(Value::Int(self.of.now_s));
        rows.push(Value::Int(1_000));
        self.letters(rows, 12, 24);
    }

    fn new_order(&mut self, rows: &mut Rows) {
        let (district, place) = self.place(ORDERS + 1 - FIRST_NEW_ORDER);
        numbers(rows, &[FIRST_NEW_ORDER - 1 + place, district, self.warehouse]);
    }

    /// The order of this number, and the heads of its whole district when it is the first.
    fn head(&mut self, district: i64, order: i64) -> OrderHead {
        if order == 1 {
            let stream = self.warehouse * DISTRICTS + district;
            let random = &mut self.of.stream(TableId::Orders, stream << 8);
            let head = |customer| OrderHead {
                customer,
                lines: between(random, 5, 15),
                carrier: between(random, 1, 10),
            };
            let mut shuffled = self.of.stream(TableId::Orders, (stream << 8) + 1);
            let customers = draw::permutation(&mut shuffled, CUSTOMERS);
            self.orders = customers.into_iter().map(head).collect();
        }
        self.orders[order as usize - 1]
    }

    fn order(&mut self, rows: &mut Rows) {
        let (district, id) = self.place(ORDERS);
        let head = self.head(district, id);
        numbers(rows, &[id, district, self.warehouse, head.customer, self.of.now_s]);
        let is_delivered = id < FIRST_NEW_ORDER;
        rows.push(if is_delivered { Value::Int(head.carrier) } else { Value::Null });
        rows.push(Value::Int(head.lines));
        rows.push(Value::Int(1));
    }

    fn lines(&mut self, rows: &mut Rows) {
        let (district, order) = self.place(ORDERS);
        let head = self.head(district, order);
        let is_delivered = order < FIRST_NEW_ORDER;
        for number in 1..=head.lines {
            numbers(rows, &[order, district, self.warehouse, number]);
            self.number(rows, 1, ITEMS);
            rows.push(self.warehouse.into());
            rows.push(if is_delivered { Value::Int(self.of.now_s) } else { Value::Null });
            rows.push(Value::Int(5));
            let amount = between(&mut self.random, 1, 999_999);
            rows.push(Value::Int(if is_delivered { 0 } else { amount }));
            self.letters(rows, 24, 24);
        }
    }

    fn item(&mut self, rows: &mut Rows) {
        rows.push(Value::Int(self.next + 1));
        self.number(rows, 1, 10_000);
        self.letters(rows, 14, 24);
        self.number(rows, 100, 10_000);
        self.data(rows);
    }

    fn stock(&mut self, rows: &mut Rows) {
        rows.push(Value::Int(self.next + 1));
        rows.push(self.warehouse.into());
        self.number(rows, 10, 100);
        for _ in 0..DISTRICTS {
            self.letters(rows, 24, 24);
        }
        numbers(rows, &[0, 0, 0]);
        self.data(rows);
    }

    fn data(&mut self, rows: &mut Rows) {
        self.text.clear();
        draw::data(&mut self.random, &mut self.text);
        rows.push(Value::Text(&self.text));
    }
}

/// Adds numbers to a row.
pub(crate) fn numbers(rows: &mut Rows, numbers: &[i64]) {
    numbers.iter().for_each(|number| rows.push(Value::Int(*number)));
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn all(table: TableId, warehouses: std::ops::RangeInclusive<i64>) -> Vec<Vec<String>> {
        let mut source = Population::new(7, 1_000_000).source(table, warehouses);
        let (mut rows, mut found) = (Rows::default(), Vec::new());
        loop {
            source.fill(&mut rows);
            if rows.is_empty() {
                return found;
            }
            let text = |row: usize| rows.row(row).map(|value| format!("{value:?}")).collect();
            found.extend((0..rows.len()).map(text));
        }
    }

    #[test]
    fn every_table_has_its_rows_in_the_order_of_its_key_loaded_together_or_apart() {
        for table in TableId::ALL.into_iter().filter(|table| *table != TableId::Dataset) {
            let rows = all(table, 2..=3);
            let declared = &schema().tables[table.number()];
            let per_warehouse = rows_per_warehouse(table);
            let expected = if table == TableId::Item { 100_000 } else { 2 * per_warehouse };
            if table != TableId::OrderLine {
                assert_eq!(rows.len() as u64, expected, "{table:?}");
            }
            let key = |row: &Vec<String>| -> Vec<i64> {
                declared.key.iter().map(|column| row[*column].parse().unwrap()).collect()
            };
            assert!(
                declared.key.is_empty() || rows.windows(2).all(|two| key(&two[0]) < key(&two[1])),
                "{table:?}"
            );
            if table != TableId::Item {
                let mut apart = all(table, 2..=2);
                apart.extend(all(table, 3..=3));
                assert!(rows == apart, "{table:?}");
            }
        }
    }

    #[test]
    fn orders_and_lines_agree() {
        let mut lines: BTreeMap<(String, String), usize> = BTreeMap::new();
        for line in all(TableId::OrderLine, 1..=1) {
            let delivered = line[6] != "null";
            assert_eq!(delivered, line[0].parse::<i64>().unwrap() < FIRST_NEW_ORDER);
            assert_eq!(delivered, line[8] == "0");
            *lines.entry((line[1].clone(), line[0].clone())).or_default() += 1;
        }
        let mut customers = BTreeSet::new();
        for order in all(TableId::Orders, 1..=1) {
            let count = lines.remove(&(order[1].clone(), order[0].clone()));
            assert_eq!(count.unwrap().to_string(), order[6]);
            customers.insert((order[1].clone(), order[3].clone()));
            assert_eq!(order[5] == "null", order[0].parse::<i64>().unwrap() >= FIRST_NEW_ORDER);
        }
        assert!(lines.is_empty());
        assert_eq!(customers.len(), 30_000, "a permutation in each district");
    }

    #[test]
    fn a_tenth_of_customers_has_bad_credit_and_all_names_exist() {
        let customers = all(TableId::Customer, 1..=1);
        let bad = customers.iter().filter(|one| one[13] == "\"BC\"").count();
        assert!((2_700..3_300).contains(&bad), "{bad}");
        let names: BTreeSet<&String> = customers.iter().map(|one| &one[5]).collect();
        assert_eq!(names.len(), 1_000);
        assert!(customers.iter().all(|one| one[10].ends_with("11111\"") && one[16] == "-1000"));
    }
}
