//! The nine tables of TPC-C, and one that says what was loaded.
//!
//! Columns are in the order of the specification (clause 1.3). Numbers that a fast target would
//! overflow within hours are wider than the specification's least width; see docs/tpcc.md.

use iostrata_database::target::{Column, ColumnType, Index, Schema, Table};

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
