//! The statements that the kit sends, with `#` for the number of the set of tables.

use std::sync::Arc;

use iostrata_database::target::{Access, ColumnType, Op, OpId};

use crate::compat::schema::KitTable;

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

const DISTRICTS: usize = 10;
/// Statements of a set.
const STATEMENTS: usize = Statement::Stock as usize + DISTRICTS;

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
const ALL: [KitStatement; STATEMENTS - DISTRICTS] = {
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
    all.chain((1..=DISTRICTS).map(stock))
}

#[cfg(test)]
mod tests {
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
