//! The nine tables of TPC-C, and one that records what was loaded; the operations of the five
//! transactions on them.
//!
//! Columns are in the order of the specification (clause 1.3). Numbers that a fast target would
//! overflow within hours are wider than the specification's least width; see docs/tpcc.md.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Index, JoinBelow, Op, OpId, Order, Schema,
    Table,
};

/// Districts of a warehouse.
pub const DISTRICTS: i64 = 10;
/// Customers of a district.
pub const CUSTOMERS: i64 = 3_000;
/// Items, and rows of stock of a warehouse.
pub const ITEMS: i64 = 100_000;
/// Orders of a district at first.
pub const ORDERS: i64 = 3_000;
/// The first order that is not delivered at first.
pub const FIRST_NEW_ORDER: i64 = 2_101;

/// A table of the workload; its number in the schema is its place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableId {
    /// WAREHOUSE.
    Warehouse,
    /// DISTRICT.
    District,
    /// CUSTOMER.
    Customer,
    /// HISTORY: payments.
    History,
    /// NEW-ORDER: orders that are not delivered yet.
    NewOrders,
    /// ORDER.
    Orders,
    /// ORDER-LINE.
    OrderLine,
    /// ITEM.
    Item,
    /// STOCK.
    Stock,
    /// What was loaded: names and values. No table of TPC-C.
    Dataset,
}

impl TableId {
    /// All of them, in the order of the schema.
    pub const ALL: [Self; 10] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::NewOrders,
        Self::Orders,
        Self::OrderLine,
        Self::Item,
        Self::Stock,
        Self::Dataset,
    ];

    /// The number of its table in the schema.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// An amount or a share: all digits, those behind the point.
const MONEY: &str = "d14.2";
const SHARE: &str = "d4.4";

/// All tables. A column is `name type`, with a `?` behind a type that may be null: `i4` a number of
/// 4 bytes, `c24` and `v24` characters, `d6.2` a decimal, `x` long
/// characters, `t` a moment.
pub fn schema() -> Schema {
    let tables = TableId::ALL.map(|table| match table {
        TableId::Warehouse => {
            let columns = format!("w_id i4, {}, w_tax {SHARE}, w_ytd {MONEY}", address("w"));
            made("warehouse", &columns, &["w_id"], &[])
        }
        TableId::District => {
            let address = address("d");
            let columns = format!(
                "d_id i1, d_w_id i4, {address}, d_tax {SHARE}, d_ytd {MONEY}, d_next_o_id i4"
            );
            made("district", &columns, &["d_w_id", "d_id"], &[])
        }
        TableId::Customer => {
            let index = ("customer_name", &["c_w_id", "c_d_id", "c_last", "c_first"][..]);
            made("customer", &customer(), &["c_w_id", "c_d_id", "c_id"], &[index])
        }
        TableId::History => {
            let columns = "h_c_id i4, h_c_d_id i1, h_c_w_id i4, h_d_id i1, h_w_id i4, h_date t, \
                           h_amount d6.2, h_data v24";
            made("history", columns, &[], &[])
        }
        TableId::NewOrders => {
            let columns = "no_o_id i4, no_d_id i1, no_w_id i4";
            made("new_orders", columns, &["no_w_id", "no_d_id", "no_o_id"], &[])
        }
        TableId::Orders => {
            let columns = "o_id i4, o_d_id i1, o_w_id i4, o_c_id i4, o_entry_d t, \
                           o_carrier_id i1?, o_ol_cnt i1, o_all_local i1";
            let index = ("orders_customer", &["o_w_id", "o_d_id", "o_c_id", "o_id"][..]);
            made("orders", columns, &["o_w_id", "o_d_id", "o_id"], &[index])
        }
        TableId::OrderLine => {
            let columns = "ol_o_id i4, ol_d_id i1, ol_w_id i4, ol_number i1, ol_i_id i4, \
                           ol_supply_w_id i4, ol_delivery_d t?, ol_quantity i2, ol_amount d6.2, \
                           ol_dist_info c24";
            made("order_line", columns, &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"], &[])
        }
        TableId::Item => made(
            "item",
            "i_id i4, i_im_id i4, i_name v24, i_price d5.2, i_data v50",
            &["i_id"],
            &[],
        ),
        TableId::Stock => made("stock", &stock(), &["s_w_id", "s_i_id"], &[]),
        TableId::Dataset => made("iostrata_dataset", "name v40, value v200", &["name"], &[]),
    });
    Schema { tables: tables.into() }
}

fn address(of: &str) -> String {
    format!(
        "{of}_name v10, {of}_street_1 v20, {of}_street_2 v20, {of}_city v20, {of}_state c2, \
         {of}_zip c9"
    )
}

fn customer() -> String {
    format!(
        "c_id i4, c_d_id i1, c_w_id i4, c_first v16, c_middle c2, c_last v16, c_street_1 v20, \
         c_street_2 v20, c_city v20, c_state c2, c_zip c9, c_phone c16, c_since t, c_credit c2, \
         c_credit_lim d12.2, c_discount {SHARE}, c_balance {MONEY}, c_ytd_payment {MONEY}, \
         c_payment_cnt i4, c_delivery_cnt i4, c_data v500"
    )
}

fn stock() -> String {
    let districts: Vec<String> = (1..=DISTRICTS).map(|d| format!("s_dist_{d:02} c24")).collect();
    format!(
        "s_i_id i4, s_w_id i4, s_quantity i2, {}, s_ytd i4, s_order_cnt i4, s_remote_cnt i4, \
         s_data v50",
        districts.join(", ")
    )
}

/// A table from the words above.
pub(crate) fn made(name: &str, columns: &str, key: &[&str], indexes: &[(&str, &[&str])]) -> Table {
    let columns = columns.split(", ").map(|column| {
        let (name, of) = column.split_once(' ').unwrap_or((column, ""));
        let is_nullable = of.ends_with('?');
        Column { name: name.to_owned(), of: of_words(of.trim_end_matches('?')), is_nullable }
    });
    let mut table = Table {
        name: name.to_owned(),
        columns: columns.collect(),
        key: Vec::new(),
        indexes: Vec::new(),
        auto_increment: false,
    };
    table.key = table.columns_of(key);
    let index = |(name, columns): &(&str, &[&str])| Index {
        name: (*name).to_owned(),
        columns: table.columns_of(columns),
        is_late: true,
    };
    table.indexes = indexes.iter().map(index).collect();
    table
}

fn of_words(of: &str) -> ColumnType {
    let (kind, size) = of.split_at_checked(1).unwrap_or((of, ""));
    let number = |text: &str| text.parse().unwrap_or_default();
    match (kind, size.split_once('.')) {
        ("i", None) => ColumnType::Int { bytes: number(size) as u8 },
        ("c", None) => ColumnType::Char(number(size)),
        ("v", None) => ColumnType::Varchar(number(size)),
        ("d", Some((digits, scale))) => {
            ColumnType::Decimal { digits: number(digits) as u8, scale: number(scale) as u8 }
        }
        ("x", None) => ColumnType::LongText,
        ("t", None) => ColumnType::DateTime,
        _ => unreachable!("{of:?} is no type of a column"),
    }
}

// The operations of the five transactions, declared.

/// Refilling of stock: less than this is not left, and so much comes in.
const STOCK_LEAST: i64 = 10;
const STOCK_REFILL: i64 = 91;
/// Most characters of a customer's data.
const DATA_MAX: u16 = 500;

/// Declares operations.
pub(crate) struct OperationSet<'a> {
    schema: &'a Schema,
    ops: Vec<Op>,
}

impl<'a> OperationSet<'a> {
    pub fn new(schema: &'a Schema) -> Self {
        Self { schema, ops: Vec::new() }
    }

    fn add(&mut self, name: &'static str, table: TableId, access: Access) -> OpId {
        self.ops.push(Op { name, table: table.number(), access });
        OpId(self.ops.len() - 1)
    }

    fn columns(&self, table: TableId, names: &[&str]) -> Vec<usize> {
        self.schema.tables[table.number()].columns_of(names)
    }

    pub fn get(&mut self, name: &'static str, table: TableId, columns: &[&str]) -> OpId {
        let columns = self.columns(table, columns);
        self.add(name, table, Access::Get { columns, locks: false })
    }

    /// A scan by the first values of the key or of the table's index.
    pub fn scan(
        &mut self,
        name: &'static str,
        table: TableId,
        by: ScanBy,
        columns: &[&str],
    ) -> OpId {
        let access = Access::Scan {
            index: by.is_index.then_some(0),
            prefix: by.prefix,
            is_range: false,
            order: if by.is_last { Order::Descending } else { Order::Ascending },
            limit: by.limit,
            locks: by.locks,
            columns: self.columns(table, columns),
            fold: Fold::Rows,
        };
        self.add(name, table, access)
    }

    /// The sum of a column over the rows whose keys begin with a value.
    pub fn sum(&mut self, name: &'static str, table: TableId, column: &str) -> OpId {
        let access = Access::Scan {
            index: None,
            prefix: 1,
            is_range: false,
            order: Order::Any,
            limit: None,
            locks: false,
            columns: self.columns(table, &[column]),
            fold: Fold::Sum,
        };
        self.add(name, table, access)
    }

    fn modify(
        &mut self,
        name: &'static str,
        table: TableId,
        prefix: usize,
        set: &[(&str, Change)],
        returns: &[&str],
    ) -> OpId {
        let declared = &self.schema.tables[table.number()];
        let assign = |(column, change): &(&str, Change)| Assign {
            column: declared.column(column),
            change: *change,
        };
        let set = set.iter().map(assign).collect();
        let returns = self.columns(table, returns);
        self.add(name, table, Access::Modify { prefix, set, returns })
    }

    pub fn insert(&mut self, name: &'static str, table: TableId) -> OpId {
        self.add(name, table, Access::Insert)
    }

    /// Sets a column of the row with a key of one column.
    pub fn set(&mut self, name: &'static str, table: TableId, column: &str) -> OpId {
        self.modify(name, table, 1, &[(column, Change::Set)], &[])
    }

    pub fn done(self) -> Arc<[Op]> {
        self.ops.into()
    }
}

/// How a scan finds its rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanBy {
    pub is_index: bool,
    pub prefix: usize,
    pub is_last: bool,
    pub limit: Option<u32>,
    pub locks: bool,
}

/// The operations by what they are for.
#[derive(Clone, Debug)]
pub(crate) struct Ops {
    /// All of them, for sessions.
    pub all: Arc<[Op]>,
    pub order: OrderOps,
    pub payment: PaymentOps,
    pub status: StatusOps,
    pub delivery: DeliveryOps,
    pub level: LevelOps,
}

impl Ops {
    /// All operations of the five transactions.
    pub fn new() -> Self {
        let schema = schema();
        let mut d = OperationSet::new(&schema);
        let order = OrderOps::new(&mut d);
        let payment = PaymentOps::new(&mut d);
        let status = StatusOps::new(&mut d);
        let delivery = DeliveryOps::new(&mut d);
        let level = LevelOps::new(&mut d);
        Self { all: d.done(), order, payment, status, delivery, level }
    }
}

/// Of orders.
#[derive(Clone, Debug)]
pub(crate) struct OrderOps {
    /// Discount, last name, credit.
    pub customer: OpId,
    pub warehouse_tax: OpId,
    /// Items by number: number, price, name, data.
    pub items: OpId,
    /// Takes items from stock, one for each district; gives item, warehouse, quantity, data and
    /// the text for the district.
    pub take_stock: [OpId; DISTRICTS as usize],
    /// Takes the next number of a district; gives tax and number.
    pub next_number: OpId,
    pub insert_order: OpId,
    pub insert_new_order: OpId,
    pub insert_lines: OpId,
}

impl OrderOps {
    fn new(d: &mut OperationSet<'_>) -> Self {
        let next = [("d_next_o_id", Change::AddConst(1))];
        let customer = &["c_discount", "c_last", "c_credit"];
        let item = &["i_id", "i_price", "i_name", "i_data"];
        Self {
            customer: d.get("customer", TableId::Customer, customer),
            warehouse_tax: d.get("warehouse", TableId::Warehouse, &["w_tax"]),
            items: d.get("items", TableId::Item, item),
            take_stock: std::array::from_fn(|at| take_stock(d, at)),
            next_number: d.modify(
                "next number",
                TableId::District,
                2,
                &next,
                &["d_tax", "d_next_o_id"],
            ),
            insert_order: d.insert("insert order", TableId::Orders),
            insert_new_order: d.insert("insert new order", TableId::NewOrders),
            insert_lines: d.insert("insert lines", TableId::OrderLine),
        }
    }
}

/// Of payments.
#[derive(Clone, Debug)]
pub(crate) struct PaymentOps {
    /// Customers of a name, by first name: number.
    pub by_name: OpId,
    /// Takes a payment; gives credit, balance and what a terminal shows.
    pub pay: OpId,
    /// Notes a payment in the data of a customer with bad credit.
    pub note: OpId,
    /// Adds to the year of a district or warehouse; gives name and address.
    pub pay_district: OpId,
    pub pay_warehouse: OpId,
    pub insert_history: OpId,
}

impl PaymentOps {
    fn new(d: &mut OperationSet<'_>) -> Self {
        let note = [("c_data", Change::Prepend { most: DATA_MAX })];
        Self {
            by_name: d.scan("customers by name", TableId::Customer, BY_NAME, &["c_id"]),
            pay: d.modify("pay", TableId::Customer, 3, PAY, PAID),
            note: d.modify("note payment", TableId::Customer, 3, &note, &[]),
            pay_district: pay_place(d, "pay district", TableId::District, 2, 'd'),
            pay_warehouse: pay_place(d, "pay warehouse", TableId::Warehouse, 1, 'w'),
            insert_history: d.insert("insert history", TableId::History),
        }
    }
}

/// Of order statuses.
#[derive(Clone, Debug)]
pub(crate) struct StatusOps {
    /// A customer as a terminal shows one: balance and names.
    pub customer: OpId,
    /// The last order of a customer: number, moment, carrier.
    pub last_order: OpId,
    pub lines: OpId,
}

impl StatusOps {
    fn new(d: &mut OperationSet<'_>) -> Self {
        let customer = &["c_balance", "c_first", "c_middle", "c_last"];
        let order = &["o_id", "o_entry_d", "o_carrier_id"];
        let line = &["ol_i_id", "ol_supply_w_id", "ol_quantity", "ol_amount", "ol_delivery_d"];
        Self {
            customer: d.get("customer status", TableId::Customer, customer),
            last_order: d.scan("last order", TableId::Orders, LAST_ORDER, order),
            lines: d.scan("order lines", TableId::OrderLine, OF_ORDER, line),
        }
    }
}

/// Of deliveries.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryOps {
    /// The oldest order of a district that is not delivered, locked: number.
    pub oldest: OpId,
    pub delete_new_order: OpId,
    /// Sets the carrier; gives district and customer.
    pub order: OpId,
    /// Sets the moment of delivery; gives district and amount.
    pub lines: OpId,
    /// Adds to a balance and counts a delivery.
    pub customer: OpId,
}

impl DeliveryOps {
    fn new(d: &mut OperationSet<'_>) -> Self {
        let carrier = [("o_carrier_id", Change::Set)];
        let moment = [("ol_delivery_d", Change::Set)];
        let customer = [("c_balance", Change::Add), ("c_delivery_cnt", Change::AddConst(1))];
        Self {
            oldest: d.scan("oldest new order", TableId::NewOrders, OLDEST, &["no_o_id"]),
            delete_new_order: d.add("delete new order", TableId::NewOrders, Access::Delete),
            order: d.modify("deliver order", TableId::Orders, 3, &carrier, &["o_d_id", "o_c_id"]),
            lines: d.modify(
                "deliver lines",
                TableId::OrderLine,
                3,
                &moment,
                &["ol_d_id", "ol_amount"],
            ),
            customer: d.modify("deliver to customer", TableId::Customer, 3, &customer, &[]),
        }
    }
}

/// Of stock levels.
#[derive(Clone, Debug)]
pub(crate) struct LevelOps {
    /// The next number of a district, as it is.
    pub next_number: OpId,
    /// How many items of recent orders run short.
    pub short: OpId,
}

impl LevelOps {
    fn new(d: &mut OperationSet<'_>) -> Self {
        Self {
            next_number: d.get("present number", TableId::District, &["d_next_o_id"]),
            short: short(d),
        }
    }
}

const BY_NAME: ScanBy =
    ScanBy { is_index: true, prefix: 3, is_last: false, limit: None, locks: false };
const LAST_ORDER: ScanBy =
    ScanBy { is_index: true, prefix: 3, is_last: true, limit: Some(1), locks: false };
const OF_ORDER: ScanBy =
    ScanBy { is_index: false, prefix: 3, is_last: false, limit: None, locks: false };
const OLDEST: ScanBy =
    ScanBy { is_index: false, prefix: 2, is_last: false, limit: Some(1), locks: true };

const PAY: &[(&str, Change)] = &[
    ("c_balance", Change::Add),
    ("c_ytd_payment", Change::Add),
    ("c_payment_cnt", Change::AddConst(1)),
];
const PAID: &[&str] = &[
    "c_credit",
    "c_balance",
    "c_first",
    "c_middle",
    "c_last",
    "c_street_1",
    "c_street_2",
    "c_city",
    "c_state",
    "c_zip",
    "c_phone",
    "c_since",
    "c_credit_lim",
    "c_discount",
];

/// Takes items from the stock of an order in the district at this place.
fn take_stock(d: &mut OperationSet<'_>, at: usize) -> OpId {
    let set = [
        ("s_quantity", Change::SubtractRefill { least: STOCK_LEAST, by: STOCK_REFILL }),
        ("s_ytd", Change::Add),
        ("s_order_cnt", Change::AddConst(1)),
        ("s_remote_cnt", Change::Add),
    ];
    let text = format!("s_dist_{:02}", at + 1);
    let returns = ["s_i_id", "s_w_id", "s_quantity", "s_data", &text];
    d.modify("take stock", TableId::Stock, 2, &set, &returns)
}

/// Adds a payment to the year of a district or warehouse.
fn pay_place(
    d: &mut OperationSet<'_>,
    name: &'static str,
    table: TableId,
    prefix: usize,
    of: char,
) -> OpId {
    let parts = ["name", "street_1", "street_2", "city", "state", "zip"];
    let returns = parts.map(|part| format!("{of}_{part}"));
    let returns: Vec<&str> = returns.iter().map(String::as_str).collect();
    d.modify(name, table, prefix, &[(&format!("{of}_ytd"), Change::Add)], &returns)
}

fn short(d: &mut OperationSet<'_>) -> OpId {
    let join = JoinBelow {
        prefix: 2,
        other: TableId::Stock.number(),
        leads_by: d.columns(TableId::OrderLine, &["ol_w_id", "ol_i_id"]),
        tested: d.schema.tables[TableId::Stock.number()].column("s_quantity"),
    };
    d.add("short of stock", TableId::OrderLine, Access::CountBelow(join))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_as_specified() {
        let schema = schema();
        let columns = |table: TableId| schema.tables[table.number()].columns.len();
        let counts = TableId::ALL.map(columns);
        assert_eq!(counts, [9, 11, 21, 8, 3, 8, 10, 5, 17, 2]);
        let stock = &schema.tables[TableId::Stock.number()];
        assert_eq!(stock.column("s_dist_10"), 12);
        assert_eq!(stock.columns[12].of, ColumnType::Char(24));
        let orders = &schema.tables[TableId::Orders.number()];
        assert!(orders.columns[orders.column("o_carrier_id")].is_nullable);
        assert_eq!(orders.key, [2, 1, 0]);
        assert_eq!(orders.indexes[0].columns, [2, 1, 3, 0]);
        let tax = &schema.tables[0].columns[7];
        assert_eq!(tax.of, ColumnType::Decimal { digits: 4, scale: 4 });
    }
}

#[cfg(test)]
mod ops_tests {
    use super::*;

    #[test]
    fn every_operation_has_its_place() {
        let ops = Ops::new();
        let op = |id: OpId| &ops.all[id.0];
        assert_eq!(op(ops.order.take_stock[9]).width(), 5);
        assert_eq!(op(ops.payment.pay).table, TableId::Customer.number());
        assert_eq!((op(ops.payment.pay_district).width(), op(ops.level.short).width()), (6, 1));
        assert_eq!(op(ops.order.next_number).name, "next number");
        assert_eq!(ops.all.len(), 33);
    }
}
