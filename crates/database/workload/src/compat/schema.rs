//! The kit's tables, the foreign keys that it adds, their first rows, filling and removing them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{
    Access, ColumnType, Index, Op, OpId, Rows, Schema, SessionOptions, Table, Target, TargetError,
    Value,
};
use iostrata_stats::Random;

use crate::compat::CompatSpec;
use crate::loaded_mark::{LoadCounts, fill_all, refuse_foreign, refuse_stopped};
use crate::tpcc::draw::{between, last_name, percent, permutation};
use crate::tpcc::{DISTRICTS, made, numbers};

/// The kit's tables of one set, each after those that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KitTable {
    Item,
    Warehouse,
    District,
    Customer,
    Stock,
    Orders,
    History,
    NewOrders,
    OrderLine,
}

impl KitTable {
    pub const ALL: [Self; 9] = [
        Self::Item,
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::Stock,
        Self::Orders,
        Self::History,
        Self::NewOrders,
        Self::OrderLine,
    ];

    /// The column with the warehouse; none of items.
    pub fn warehouse_column(self) -> Option<usize> {
        let name = match self {
            Self::Item => return None,
            Self::Warehouse => "w_id",
            Self::District => "d_w_id",
            Self::Customer => "c_w_id",
            Self::History => "h_w_id",
            Self::Orders => "o_w_id",
            Self::Stock => "s_w_id",
            Self::NewOrders => "no_w_id",
            Self::OrderLine => "ol_w_id",
        };
        Some(table_of(self, 1).column(name))
    }

    /// Its number in the schema, for a set of tables counted from 0.
    pub fn number(self, set: u32) -> usize {
        set as usize * Self::ALL.len() + self as usize
    }
}

/// The tables of so many sets.
pub fn schema(sets: u32) -> Schema {
    let set = |set: u32| KitTable::ALL.map(|table| table_of(table, set + 1));
    Schema { tables: (0..sets).flat_map(set).collect() }
}

fn table_of(table: KitTable, set: u32) -> Table {
    let address = |of: &str| {
        format!(
            "{of}_name v10?, {of}_street_1 v20?, {of}_street_2 v20?, {of}_city v20?, \
             {of}_state c2?, {of}_zip c9?, {of}_tax d4.2?, {of}_ytd d12.2?"
        )
    };
    let (name, columns, key): (&str, String, &[&str]) = match table {
        KitTable::Warehouse => ("warehouse", format!("w_id i2, {}", address("w")), &["w_id"]),
        KitTable::District => {
            let columns = format!("d_id i1, d_w_id i2, {}, d_next_o_id i4?", address("d"));
            ("district", columns, &["d_w_id", "d_id"])
        }
        KitTable::Customer => {
            let columns = "c_id i4, c_d_id i1, c_w_id i2, c_first v16?, c_middle c2?, \
                c_last v16?, c_street_1 v20?, c_street_2 v20?, c_city v20?, c_state c2?, \
                c_zip c9?, c_phone c16?, c_since t?, c_credit c2?, c_credit_lim i8?, \
                c_discount d4.2?, c_balance d12.2?, c_ytd_payment d12.2?, c_payment_cnt i2?, \
                c_delivery_cnt i2?, c_data x?";
            ("customer", columns.to_owned(), &["c_w_id", "c_d_id", "c_id"])
        }
        KitTable::History => {
            let columns = "h_c_id i4?, h_c_d_id i1?, h_c_w_id i2?, h_d_id i1?, h_w_id i2?, \
                h_date t?, h_amount d6.2?, h_data v24?";
            ("history", columns.to_owned(), &[])
        }
        KitTable::Orders => {
            let columns = "o_id i4, o_d_id i1, o_w_id i2, o_c_id i4?, o_entry_d t?, \
                o_carrier_id i1?, o_ol_cnt i1?, o_all_local i1?";
            ("orders", columns.to_owned(), &["o_w_id", "o_d_id", "o_id"])
        }
        KitTable::NewOrders => {
            let columns = "no_o_id i4, no_d_id i1, no_w_id i2";
            ("new_orders", columns.to_owned(), &["no_w_id", "no_d_id", "no_o_id"])
        }
        KitTable::OrderLine => {
            let columns = "ol_o_id i4, ol_d_id i1, ol_w_id i2, ol_number i1, ol_i_id i4?, \
                ol_supply_w_id i2?, ol_delivery_d t?, ol_quantity i1?, ol_amount d6.2?, \
                ol_dist_info c24?";
            let key = &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"];
            ("order_line", columns.to_owned(), key)
        }
        KitTable::Stock => {
            let texts: Vec<String> = (1..=10).map(|d| format!("s_dist_{d:02} c24?")).collect();
            let columns = format!(
                "s_i_id i4, s_w_id i2, s_quantity i2?, {}, s_ytd d8.0?, s_order_cnt i2?, \
                 s_remote_cnt i2?, s_data v50?",
                texts.join(", ")
            );
            ("stock", columns, &["s_w_id", "s_i_id"])
        }
        KitTable::Item => {
            let columns = "i_id i4, i_im_id i4?, i_name v24?, i_price d5.2?, i_data v50?";
            ("item", columns.to_owned(), &["i_id"])
        }
    };
    let mut made = made(&format!("{name}{set}"), &columns, key, &[]);
    made.indexes = indexes(table, set, &made);
    made
}

fn indexes(table: KitTable, set: u32, of: &Table) -> Vec<Index> {
    let all: &[(&str, &[&str])] = match table {
        KitTable::Customer => &[("idx_customer", &["c_w_id", "c_d_id", "c_last", "c_first"])],
        KitTable::Orders => &[("idx_orders", &["o_w_id", "o_d_id", "o_c_id", "o_id"])],
        KitTable::Stock => &[("fkey_stock_2", &["s_i_id"])],
        KitTable::OrderLine => &[("fkey_order_line_2", &["ol_supply_w_id", "ol_i_id"])],
        KitTable::History => &[
            ("fkey_history_1", &["h_c_w_id", "h_c_d_id", "h_c_id"]),
            ("fkey_history_2", &["h_w_id", "h_d_id"]),
        ],
        _ => &[],
    };
    let index = |(name, columns): &(&str, &[&str])| Index {
        name: format!("{name}{set}"),
        columns: of.columns_of(columns),
        is_late: true,
    };
    all.iter().map(index).collect()
}

/// The foreign keys of a set, counted from 1: table, its name in the constraint's, columns, and
/// what they refer to.
const FOREIGN_KEYS: [(&str, &str, &str, &str, &str); 10] = [
    ("new_orders", "new_orders_1", "no_w_id,no_d_id,no_o_id", "orders", "o_w_id,o_d_id,o_id"),
    ("orders", "orders_1", "o_w_id,o_d_id,o_c_id", "customer", "c_w_id,c_d_id,c_id"),
    ("customer", "customer_1", "c_w_id,c_d_id", "district", "d_w_id,d_id"),
    ("history", "history_1", "h_c_w_id,h_c_d_id,h_c_id", "customer", "c_w_id,c_d_id,c_id"),
    ("history", "history_2", "h_w_id,h_d_id", "district", "d_w_id,d_id"),
    ("district", "district_1", "d_w_id", "warehouse", "w_id"),
    ("order_line", "order_line_1", "ol_w_id,ol_d_id,ol_o_id", "orders", "o_w_id,o_d_id,o_id"),
    ("order_line", "order_line_2", "ol_supply_w_id,ol_i_id", "stock", "s_w_id,s_i_id"),
    ("stock", "stock_1", "s_w_id", "warehouse", "w_id"),
    ("stock", "stock_2", "s_i_id", "item", "i_id"),
];

/// Statements that add the foreign keys of a set, counted from 1.
pub(super) fn foreign_keys(set: u32) -> impl Iterator<Item = String> {
    FOREIGN_KEYS.into_iter().map(move |(table, name, columns, other, key)| {
        format!(
            "ALTER TABLE {table}{set} ADD CONSTRAINT fkey_{name}_{set} \
             FOREIGN KEY ({columns}) REFERENCES {other}{set} ({key})"
        )
    })
}

// The kit's first rows: ranges as in TPC-C, texts of one repeated letter.

/// Rows that are made at once.
const BATCH: usize = 256;

/// The rows of one table for one warehouse; of items, all.
struct KitRows {
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
fn rows_of(table: KitTable, spec: &CompatSpec) -> u64 {
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

    /// Clears the buffer and puts the next rows in; none when no more are left.
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

// Filling and removing the kit's tables.

/// One thing to fill.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    table: KitTable,
    set: u32,
    warehouse: i64,
}

/// Makes and fills the tables, then adds the foreign keys. `progress` gets the rows so far and in
/// all, from several threads. Gives the number of rows.
///
/// # Errors
/// One of the tables is there already; the target's error; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &CompatSpec,
    (threads, now_s): (usize, i64),
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<LoadCounts, TargetError> {
    let schema = schema(spec.tables);
    if let Some(table) = target.present(&schema)?.first() {
        let text = format!("table {} is there already", schema.tables[*table].name);
        let fix = "remove the tables with `tpcc cleanup --compat sysbench-tpcc` first";
        return Err(TargetError::not_ready(&target.name(), "tables_exist", text, fix));
    }
    (0..schema.tables.len()).try_for_each(|table| target.create(&schema, table))?;
    let chunks = chunks(spec);
    let in_all = chunks.iter().map(|chunk| rows_of(chunk.table, spec)).sum::<u64>();
    let rows = AtomicU64::new(0);
    fill_all(&chunks, threads, stop, |chunk, is_over| {
        let Chunk { table, set, warehouse } = *chunk;
        let mut source = KitRows::new(table, (set, warehouse), *spec, now_s);
        let mut more = |buffer: &mut Rows| {
            if is_over() {
                return buffer.clear(1);
            }
            source.fill(buffer);
            let count = buffer.len() as u64;
            let rows = rows.fetch_add(count, Ordering::Relaxed) + count;
            progress(rows, in_all.max(rows));
        };
        let part = table.warehouse_column().map(|column| (column, warehouse));
        target.load(&schema, table.number(set), part, &mut more).map(drop)
    })?;
    let fix = "remove what is there with `tpcc cleanup --compat sysbench-tpcc`, begin again";
    refuse_stopped(target, stop, fix)?;
    target.finish(&schema)?;
    if spec.foreign_keys {
        add_foreign_keys(target, spec.tables)?;
    }
    Ok(LoadCounts { rows: rows.into_inner(), rows_before: 0 })
}

fn chunks(spec: &CompatSpec) -> Vec<Chunk> {
    let mut all = Vec::new();
    for set in 0..spec.tables {
        for table in KitTable::ALL {
            let warehouses = if table == KitTable::Item { 1..=1 } else { 1..=spec.scale };
            all.extend(warehouses.map(|warehouse| Chunk { table, set, warehouse }));
        }
    }
    all.sort_by_key(|chunk| std::cmp::Reverse(rows_of(chunk.table, spec)));
    all
}

fn add_foreign_keys(target: &dyn Target, sets: u32) -> Result<(), TargetError> {
    let op = |sql| Op {
        name: "foreign key",
        table: 0,
        access: Access::Statement { sql, gives: Vec::new() },
    };
    let ops: Arc<[Op]> = (1..=sets).flat_map(foreign_keys).map(op).collect();
    let count = ops.len();
    let options = SessionOptions { ops, autocommit: true, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(schema(sets)), &options)?;
    let mut rows = Rows::default();
    (0..count).try_for_each(|op| session.run(OpId(op), &[], &mut rows).map(drop))
}

/// How many warehouses the first set of tables has; none where the tables are not there.
///
/// # Errors
/// The target's error.
pub fn warehouses(target: &dyn Target) -> Result<Option<i64>, TargetError> {
    let schema = schema(1);
    let number = KitTable::Warehouse.number(0);
    if !target.present(&schema)?.contains(&number) {
        return Ok(None);
    }
    let sql = format!("SELECT COUNT(*) FROM {}", schema.tables[number].name);
    let gives = vec![ColumnType::Int { bytes: 8 }];
    let access = Access::Statement { sql, gives };
    let ops: Arc<[Op]> = [Op { name: "count of warehouses", table: number, access }].into();
    let options = SessionOptions { ops, autocommit: true, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(schema), &options)?;
    let mut rows = Rows::default();
    session.run(OpId(0), &[], &mut rows)?;
    Ok((!rows.is_empty()).then(|| rows.get(0, 0).int()))
}

/// Removes the kit's tables that are there; gives how many.
///
/// # Errors
/// The target's error.
pub fn cleanup(target: &dyn Target, tables: u32) -> Result<usize, TargetError> {
    let schema = schema(tables);
    let mut present = target.present(&schema)?;
    refuse_foreign(target, std::slice::from_ref(&schema), &present)?;
    // In the order of the schema, tables come after those that they refer to.
    present.reverse();
    present.iter().try_for_each(|table| target.remove(&schema, *table))?;
    Ok(present.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_kit_s_names() {
        let schema = schema(2);
        assert_eq!(schema.tables.len(), 18);
        let lines = &schema.tables[KitTable::OrderLine.number(1)];
        assert_eq!((lines.name.as_str(), lines.key.len()), ("order_line2", 4));
        assert_eq!(lines.indexes[0].name, "fkey_order_line_22");
        assert!(foreign_keys(2).all(|text| text.contains("2 ") && text.contains("_2 FOREIGN")));
    }
}

#[cfg(test)]
mod rows_tests {
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
