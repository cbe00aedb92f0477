//! The kit's first rows: ranges as in TPC-C, texts of one repeated letter.

use iostrata_database::target::{Rows, Value};
use iostrata_stats::Random;

use crate::compat::CompatSpec;
use crate::compat::schema::{KitTable, schema};
use crate::tpcc::draw::{between, last_name, percent, permutation};
use crate::tpcc::{DISTRICTS, numbers};

/// Rows that are made at once.
const BATCH: usize = 256;

/// The rows of one table for one warehouse; of items, all.
pub(super) struct KitRows {
    table: KitTable,
    width: usize,
    warehouse: i64,
    spec: CompatSpec,
    now_s: i64,
    next: i64,
    random: Random,
    /// Lines of each order, drawn alike by orders and lines.
    lines: Vec<i64>,
    customers: Vec<i64>,
    text: Vec<u8>,
}

/// Rows of a table for one warehouse, about.
pub(super) fn rows_of(table: KitTable, spec: &CompatSpec) -> u64 {
    let rows = match table {
        KitTable::Warehouse => 1,
        KitTable::District => DISTRICTS,
        KitTable::Customer | KitTable::History | KitTable::Orders => DISTRICTS * spec.customers,
        KitTable::NewOrders => DISTRICTS * (spec.customers + 1 - spec.first_new_order()),
        KitTable::OrderLine => DISTRICTS * spec.customers * 10,
        KitTable::Item | KitTable::Stock => spec.items,
    };
    rows as u64
}

impl KitRows {
    pub fn new(
        table: KitTable,
        (set, warehouse): (u32, i64),
        spec: CompatSpec,
        now_s: i64,
    ) -> Self {
        let CompatSpec { seed, customers, .. } = spec;
        let place = u64::from(set) << 32 | warehouse as u64;
        let shared = &mut Random::of_stream(seed, place);
        Self {
            table,
            width: schema(1).tables[table.number(0)].columns.len(),
            warehouse,
            spec,
            now_s,
            next: 0,
            customers: permutation(shared, customers),
            lines: (0..DISTRICTS * customers).map(|_| between(shared, 5, 15)).collect(),
            random: Random::of_stream(seed, (table as u64 + 1) << 56 | place),
            text: Vec::new(),
        }
    }

    /// Clears the buffer and puts the next rows in; none when there are no more.
    pub fn fill(&mut self, rows: &mut Rows) {
        rows.clear(self.width);
        let count = match self.table {
            KitTable::OrderLine => DISTRICTS * self.spec.customers,
            table => rows_of(table, &self.spec) as i64,
        };
        while rows.len() < BATCH && self.next < count {
            match self.table {
                KitTable::Item => self.item(rows),
                KitTable::Warehouse => self.place(rows, &[self.warehouse], 30_000_000),
                KitTable::District => {
                    self.place(rows, &[self.next + 1, self.warehouse], 3_000_000);
                    rows.push(Value::Int(self.spec.customers + 1));
                }
                KitTable::Customer => self.customer(rows),
                KitTable::History => self.history(rows),
                KitTable::Orders => self.order(rows),
                KitTable::Stock => self.stock(rows),
                KitTable::NewOrders => {
                    let first = self.spec.first_new_order();
                    let per_district = self.spec.customers + 1 - first;
                    let order = first + self.next % per_district;
                    numbers(rows, &[order, self.next / per_district + 1, self.warehouse]);
                }
                KitTable::OrderLine => self.order_lines(rows),
            }
            self.next += 1;
        }
    }

    /// A letter from a to z.
    fn letter(&mut self) -> u8 {
        b'a' + self.random.below(26) as u8
    }

    /// A prefix, then so many random letters.
    fn named(&mut self, rows: &mut Rows, prefix: &str, letters: usize) {
        self.text.clear();
        self.text.extend_from_slice(prefix.as_bytes());
        for _ in 0..letters {
            let letter = self.letter();
            self.text.push(letter);
        }
        rows.push(Value::Text(&self.text));
    }

    /// One letter, so many times.
    fn repeated(&mut self, rows: &mut Rows, least: i64, most: i64) {
        let letter = self.letter();
        self.text.clear();
        self.text.resize(between(&mut self.random, least, most) as usize, letter);
        rows.push(Value::Text(&self.text));
    }

    fn digits(&mut self, rows: &mut Rows, prefix: &str, count: usize) {
        self.text.clear();
        self.text.extend_from_slice(prefix.as_bytes());
        self.text.extend((0..count).map(|_| b'0' + self.random.below(10) as u8));
        rows.push(Value::Text(&self.text));
    }

    fn address(&mut self, rows: &mut Rows) {
        for prefix in ["street1-", "street2-", "city-"] {
            self.named(rows, prefix, 10);
        }
        self.named(rows, "", 2);
        self.digits(rows, "zip-", 5);
    }

    fn place(&mut self, rows: &mut Rows, key: &[i64], ytd: i64) {
        numbers(rows, key);
        self.named(rows, "name-", 5);
        self.address(rows);
        numbers(rows, &[between(&mut self.random, 0, 20), ytd]);
    }

    fn district_and_place(&self) -> (i64, i64) {
        (self.next / self.spec.customers + 1, self.next % self.spec.customers + 1)
    }

    fn customer(&mut self, rows: &mut Rows) {
        let (district, id) = self.district_and_place();
        numbers(rows, &[id, district, self.warehouse]);
        let letters = between(&mut self.random, 2, 10) as usize;
        self.named(rows, "first-", letters);
        rows.push("OE".into());
        let name = if id <= 1_000 { id - 1 } else { between(&mut self.random, 0, 999) };
        self.text.clear();
        last_name(&mut self.text, name);
        rows.push(Value::Text(&self.text));
        self.address(rows);
        self.digits(rows, "", 16);
        rows.push(Value::Int(self.now_s));
        rows.push(if percent(&mut self.random, 10) { "BC" } else { "GC" }.into());
        numbers(rows, &[50_000, between(&mut self.random, 0, 50), -1_000, 1_000, 1, 0]);
        self.repeated(rows, 300, 500);
    }

    fn history(&mut self, rows: &mut Rows) {
        let (district, id) = self.district_and_place();
        numbers(rows, &[id, district, self.warehouse, district, self.warehouse]);
        numbers(rows, &[self.now_s, 1_000]);
        self.repeated(rows, 12, 24);
    }

    fn order(&mut self, rows: &mut Rows) {
        let (district, id) = self.district_and_place();
        let customer = self.customers[id as usize - 1];
        numbers(rows, &[id, district, self.warehouse, customer, self.now_s]);
        let carrier = between(&mut self.random, 1, 10);
        rows.push(if id < self.spec.first_new_order() { carrier.into() } else { Value::Null });
        numbers(rows, &[self.lines[self.next as usize], 1]);
    }

    fn order_lines(&mut self, rows: &mut Rows) {
        let (district, order) = self.district_and_place();
        let is_delivered = order < self.spec.first_new_order();
        for number in 1..=self.lines[self.next as usize] {
            let item = between(&mut self.random, 1, self.spec.items);
            numbers(rows, &[order, district, self.warehouse, number, item, self.warehouse]);
            rows.push(if is_delivered { self.now_s.into() } else { Value::Null });
            let amount = between(&mut self.random, 0, 999_999);
            numbers(rows, &[5, if is_delivered { 0 } else { amount }]);
            self.repeated(rows, 24, 24);
        }
    }

    fn stock(&mut self, rows: &mut Rows) {
        numbers(rows, &[self.next + 1, self.warehouse, between(&mut self.random, 10, 100)]);
        for _ in 0..DISTRICTS {
            self.repeated(rows, 24, 24);
        }
        numbers(rows, &[0, 0, 0]);
        self.repeated(rows, 26, 50);
    }

    fn item(&mut self, rows: &mut Rows) {
        let image = between(&mut self.random, 1, 10_000);
        let price = between(&mut self.random, 100, 10_100);
        numbers(rows, &[self.next + 1, image]);
        let name = format!("item-{image}-{}.{:02}", price / 100, price % 100);
        let start = name.len();
        self.named(rows, &name[..start.min(19)], 5);
        numbers(rows, &[price.min(99_999)]);
        self.named(rows, &format!("data-{name}-"), 5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_its_rows() {
        let small = CompatSpec { customers: 100, items: 1_000, ..CompatSpec::default() };
        assert_eq!((CompatSpec::default().first_new_order(), small.first_new_order()), (2_101, 71));
        let [full, few] = [CompatSpec::default(), small].map(|spec| {
            KitTable::ALL.map(|table| {
                let mut source = KitRows::new(table, (0, 2), spec, 1_000_000);
                let (mut rows, mut count) = (Rows::default(), 0);
                loop {
                    source.fill(&mut rows);
                    if rows.is_empty() {
                        break;
                    }
                    count += rows.len() as i64;
                }
                let lines = source.lines.iter().sum::<i64>();
                if table == KitTable::OrderLine { count - lines } else { count }
            })
        });
        // In the order of the tables; of lines, how many there are more than the orders have.
        assert_eq!(full, [100_000, 1, 10, 30_000, 100_000, 30_000, 30_000, 9_000, 0]);
        assert_eq!(few, [1_000, 1, 10, 1_000, 1_000, 1_000, 1_000, 300, 0]);
    }
}
