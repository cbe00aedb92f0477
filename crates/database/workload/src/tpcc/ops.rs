//! The operations of the five transactions, declared.

use std::sync::Arc;

use iostrata_database::target::{Access, Assign, Change, Fold, JoinBelow, Op, OpId, Order, Schema};

use crate::tpcc::schema::{DISTRICTS, TableId, schema};

/// Refilling of stock: less than this is not left, and so much comes in.
const STOCK_LEAST: i64 = 10;
const STOCK_REFILL: i64 = 91;
/// Most characters of a customer's data.
const DATA_MAX: u16 = 500;

/// Declares operations.
pub(crate) struct Declared<'a> {
    schema: &'a Schema,
    ops: Vec<Op>,
}

impl<'a> Declared<'a> {
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
        let mut d = Declared::new(&schema);
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
    fn new(d: &mut Declared<'_>) -> Self {
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
    fn new(d: &mut Declared<'_>) -> Self {
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
    fn new(d: &mut Declared<'_>) -> Self {
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
    fn new(d: &mut Declared<'_>) -> Self {
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
    fn new(d: &mut Declared<'_>) -> Self {
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
fn take_stock(d: &mut Declared<'_>, at: usize) -> OpId {
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
    d: &mut Declared<'_>,
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

fn short(d: &mut Declared<'_>) -> OpId {
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
