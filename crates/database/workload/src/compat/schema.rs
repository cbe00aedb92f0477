//! The kit's tables, and the foreign keys that it adds.

use iostrata_database::target::{Index, Schema, Table};

use crate::tpcc::made;

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
