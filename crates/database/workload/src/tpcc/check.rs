//! The rows of all tables, how many they must be, and the twelve consistency conditions of clause
//! 3.3.2, over all warehouses.
//!
//! Invariant: everything is read in one transaction, so that all conditions speak of one moment;
//! amounts are whole cents, so that sums are exact. Rows are read once and in order; of customers
//! two sums each are kept, of everything else only the district at hand. It changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use iostrata_database::target::{OpId, Rows, Session, SessionOptions, Target, TargetError, Value};

use crate::tpcc::schema::{
    CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS, OperationSet, ScanBy, TableId, schema,
};
use crate::workload::{CheckResult, TableCount};

/// The number of conditions.
pub const CONDITIONS: usize = 12;

/// What of the dataset decides how it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckPlan {
    /// Warehouses.
    pub warehouses: i64,
    /// Whether nothing has run since the load, so that condition 11 holds as written.
    pub is_fresh: bool,
}

/// Amounts of one customer, in cents.
#[derive(Clone, Copy, Debug, Default)]
struct CustomerAmounts {
    /// Of all payments.
    history: i64,
    /// Of all lines that were delivered.
    delivered: i64,
}

/// The scans of a check.
struct Scans {
    warehouses: OpId,
    districts: OpId,
    customers: OpId,
    items: OpId,
    fixed: FixedCounts,
    history: OpId,
    new_orders: OpId,
    orders: OpId,
    lines: OpId,
}

/// Checks all conditions; `progress` gets the share that is done.
///
/// # Errors
/// The target's error. Conditions that do not hold are no error.
pub fn check(
    target: &dyn Target,
    plan: CheckPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<CheckResult, TargetError> {
    let schema = Arc::new(schema());
    let mut d = OperationSet::new(&schema);
    let scans = scans(&mut d);
    let options = SessionOptions { ops: d.done(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    let mut check = Check::new(plan);
    check.items(&mut *session, &scans)?;
    check.history(&mut *session, &scans)?;
    for warehouse in 1..=plan.warehouses {
        progress((warehouse - 1) as f64 / plan.warehouses as f64);
        check.warehouse(&mut *session, &scans, warehouse)?;
    }
    session.rollback()?;
    Ok(check.done())
}

/// The number that the next order of a district gets.
///
/// # Errors
/// The target's error; no such district.
pub fn next_order(target: &dyn Target, warehouse: i64, district: i64) -> Result<i64, TargetError> {
    let schema = Arc::new(schema());
    let mut d = OperationSet::new(&schema);
    let op = d.get("next number", TableId::District, &["d_next_o_id"]);
    let options = SessionOptions { ops: d.done(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    let mut rows = Rows::default();
    session.begin()?;
    session.run(op, &[warehouse, district].map(Value::Int), &mut rows)?;
    session.rollback()?;
    match rows.is_empty() {
        true => {
            let text = format!("there is no district {warehouse}/{district}");
            Err(TargetError::not_ready(
                &target.name(),
                "missing_row",
                text,
                "name one of the dataset",
            ))
        }
        false => Ok(rows.get(0, 0).int()),
    }
}

fn scans(d: &mut OperationSet<'_>) -> Scans {
    let by = |prefix| ScanBy { prefix, ..ScanBy::default() };
    Scans {
        warehouses: d.scan("warehouse", TableId::Warehouse, by(1), &["w_ytd"]),
        districts: d.scan("districts", TableId::District, by(1), &["d_id", "d_ytd", "d_next_o_id"]),
        customers: d.scan(
            "customers",
            TableId::Customer,
            by(1),
            &["c_d_id", "c_id", "c_balance", "c_ytd_payment", "c_payment_cnt"],
        ),
        items: d.scan("items", TableId::Item, by(0), &["i_id"]),
        fixed: FixedCounts::declare(d),
        history: d.scan(
            "history",
            TableId::History,
            by(0),
            &["h_c_w_id", "h_c_d_id", "h_c_id", "h_w_id", "h_d_id", "h_amount"],
        ),
        new_orders: d.scan("new orders", TableId::NewOrders, by(2), &["no_o_id"]),
        orders: d.scan(
            "orders",
            TableId::Orders,
            by(2),
            &["o_id", "o_c_id", "o_carrier_id", "o_ol_cnt"],
        ),
        lines: d.scan(
            "lines",
            TableId::OrderLine,
            by(2),
            &["ol_o_id", "ol_delivery_d", "ol_amount"],
        ),
    }
}

struct Check {
    plan: CheckPlan,
    checked: CheckResult,
    counts: Counts,
    /// Of every customer, warehouse by warehouse and district by district.
    paid: Vec<CustomerAmounts>,
    /// Sums of payments of every district.
    taken: Vec<i64>,
    /// Payments, as customers have counted them.
    payments: i64,
    /// Rows of HISTORY.
    history_rows: i64,
}

impl Check {
    fn new(plan: CheckPlan) -> Self {
        let districts = (plan.warehouses * DISTRICTS) as usize;
        let mut checked = CheckResult::specified(CONDITIONS);
        if !plan.is_fresh {
            let text = "after a run: orders - new orders = delivered orders";
            checked.conditions[10].instead = Some(text.to_owned());
        }
        Self {
            plan,
            checked,
            counts: Counts::new(),
            payments: 0,
            history_rows: 0,
            paid: vec![CustomerAmounts::default(); districts * CUSTOMERS as usize],
            taken: vec![0; districts],
        }
    }

    /// Everything that was found. HISTORY has a row for each payment that a customer has counted,
    /// and those that the load made at least.
    fn done(mut self) -> CheckResult {
        let loaded = self.plan.warehouses * DISTRICTS * CUSTOMERS;
        let expected = self.payments.max(loaded);
        let place = || "all warehouses".to_owned();
        self.counts.of(TableId::History).note(place, self.history_rows, expected);
        self.checked.counts = self.counts.0;
        self.checked
    }

    fn items(&mut self, session: &mut dyn Session, scans: &Scans) -> Result<(), TargetError> {
        let mut rows = 0;
        session.stream(scans.items, &[], &mut |_| rows += 1)?;
        self.checked.rows += rows as u64;
        self.counts.of(TableId::Item).note(|| "all".to_owned(), rows, ITEMS);
        Ok(())
    }

    fn district(&self, warehouse: i64, district: i64) -> Option<usize> {
        let is_there =
            (1..=self.plan.warehouses).contains(&warehouse) && (1..=DISTRICTS).contains(&district);
        is_there.then(|| ((warehouse - 1) * DISTRICTS + district - 1) as usize)
    }

    /// The place of a customer among all.
    fn customer(&self, warehouse: i64, district: i64, id: i64) -> Option<usize> {
        let district = self.district(warehouse, district)?;
        let is_there = (1..=CUSTOMERS).contains(&id);
        is_there.then(|| district * CUSTOMERS as usize + id as usize - 1)
    }

    /// Sums up all payments.
    fn history(&mut self, session: &mut dyn Session, scans: &Scans) -> Result<(), TargetError> {
        session.stream(scans.history, &[], &mut |row| {
            self.checked.rows += 1;
            self.history_rows += 1;
            let [c_w, c_d, c, w, d, amount] = numbers(row);
            let (customer, district) = (self.customer(c_w, c_d, c), self.district(w, d));
            let (Some(customer), Some(district)) = (customer, district) else {
                self.checked.violated(10, || {
                    format!("a payment of customer {c_w}/{c_d}/{c} at {w}/{d}: no such place")
                });
                return;
            };
            self.paid[customer].history += amount;
            self.taken[district] += amount;
        })
    }

    fn warehouse(
        &mut self,
        session: &mut dyn Session,
        scans: &Scans,
        warehouse: i64,
    ) -> Result<(), TargetError> {
        let mut ytd = None;
        session.stream(scans.warehouses, &[warehouse.into()], &mut |row| {
            ytd = Some(row[0].int());
        })?;
        let mut districts: Vec<[i64; 3]> = Vec::new();
        session.stream(scans.districts, &[warehouse.into()], &mut |row| {
            districts.push(numbers(row));
        })?;
        self.checked.rows += u64::from(ytd.is_some()) + districts.len() as u64;
        let place = format!("warehouse {warehouse}");
        let named = || place.clone();
        self.counts.of(TableId::Warehouse).note(named, i64::from(ytd.is_some()), 1);
        self.counts.of(TableId::District).note(named, districts.len() as i64, DISTRICTS);
        let stock = scans.fixed.stock(session, warehouse)?;
        self.checked.rows += stock.max(0) as u64;
        self.counts.of(TableId::Stock).note(named, stock, ITEMS);
        match (ytd, districts.len()) {
            (Some(ytd), 10) => {
                let sum: i64 = districts.iter().map(|[_, ytd, _]| ytd).sum();
                let first = ((warehouse - 1) * DISTRICTS) as usize;
                let taken: i64 = self.taken[first..][..DISTRICTS as usize].iter().sum();
                self.checked.compare(1, &place, (ytd, "W_YTD"), (sum, "the sum of D_YTD"));
                self.checked.compare(8, &place, (ytd, "W_YTD"), (taken, "the sum of H_AMOUNT"));
            }
            (_, found) => self
                .checked
                .violated(1, || format!("{place}: not there, or {found} districts of 10")),
        }
        for [district, ytd, next] in districts {
            self.one_district(session, scans, (warehouse, district), (ytd, next))?;
        }
        self.customers(session, scans, warehouse)
    }

    fn one_district(
        &mut self,
        session: &mut dyn Session,
        scans: &Scans,
        (warehouse, district): (i64, i64),
        (ytd, next): (i64, i64),
    ) -> Result<(), TargetError> {
        let place = format!("district {warehouse}/{district}");
        let args = [warehouse, district].map(Value::Int);
        let mut rows = DistrictRows::default();
        session.stream(scans.new_orders, &args, &mut |row| rows.new_order(row[0].int()))?;
        session.stream(scans.orders, &args, &mut |row| {
            let carrier = (!row[2].is_null()).then(|| row[2].int());
            rows.order(row[0].int(), row[1].int(), carrier, row[3].int());
        })?;
        session.stream(scans.lines, &args, &mut |row| {
            rows.line(row[0].int(), !row[1].is_null(), row[2].int());
        })?;
        self.checked.rows += rows.count();
        let Some(at) = self.district(warehouse, district) else { return Ok(()) };
        let taken = self.taken[at];
        self.checked.compare(9, &place, (ytd, "D_YTD"), (taken, "the sum of H_AMOUNT"));
        self.count_orders(&rows, &place, next);
        let found = District { rows: &rows, next };
        found.judge(&mut self.checked, &place, self.plan.is_fresh);
        for (customer, amount) in rows.delivered() {
            if let Some(at) = self.customer(warehouse, district, customer) {
                self.paid[at].delivered += amount;
            }
        }
        Ok(())
    }

    /// Orders are as many as their numbers, and none is ever removed; the other counts follow from
    /// them. A district has at least the orders of the load.
    fn count_orders(&mut self, rows: &DistrictRows, place: &str, next: i64) {
        let [orders, carried, new_orders, lines, lines_said] = rows.numbers();
        let fresh = ORDERS - DELIVERED_AT_FIRST;
        let waiting = if self.plan.is_fresh { fresh } else { orders - carried };
        for (table, rows, expected) in [
            (TableId::Orders, orders, (next - 1).max(ORDERS)),
            (TableId::NewOrders, new_orders, waiting),
            (TableId::OrderLine, lines, lines_said),
        ] {
            self.counts.of(table).note(|| place.to_owned(), rows, expected);
        }
    }

    fn customers(
        &mut self,
        session: &mut dyn Session,
        scans: &Scans,
        warehouse: i64,
    ) -> Result<(), TargetError> {
        let mut found = [0; DISTRICTS as usize];
        session.stream(scans.customers, &[warehouse.into()], &mut |row| {
            self.checked.rows += 1;
            let [district, id, balance, ytd, payments] = numbers(row);
            self.payments += payments;
            if let Some(found) = found.get_mut((district - 1) as usize) {
                *found += 1;
            }
            let at = self.customer(warehouse, district, id);
            let paid = at.map_or(CustomerAmounts::default(), |at| self.paid[at]);
            let place = format_args!("customer {warehouse}/{district}/{id}");
            let expected = paid.delivered - paid.history;
            let of = "delivered amounts - payments";
            self.checked.compare(10, &place, (balance, "C_BALANCE"), (expected, of));
            let sum = (balance + ytd, "C_BALANCE + C_YTD_PAYMENT");
            self.checked.compare(12, &place, sum, (paid.delivered, "the delivered amounts"));
        })?;
        for (district, rows) in (1..).zip(found) {
            let place = || format!("district {warehouse}/{district}");
            self.counts.of(TableId::Customer).note(place, rows, CUSTOMERS);
        }
        Ok(())
    }
}

fn numbers<const N: usize>(row: &[Value<'_>]) -> [i64; N] {
    std::array::from_fn(|at| row[at].int())
}

/// Orders that are delivered at first, in each district.
const DELIVERED_AT_FIRST: i64 = FIRST_NEW_ORDER - 1;

// The orders of one district, and the conditions that speak of them.

/// One order as its three tables have it.
#[derive(Clone, Copy, Debug, Default)]
struct OneOrder {
    /// Whether ORDER has it.
    is_there: bool,
    is_new: bool,
    customer: i64,
    is_carried: bool,
    lines_said: i64,
    lines: i64,
    lines_delivered: i64,
    delivered_amount: i64,
}

/// The orders of one district by their numbers.
#[derive(Debug, Default)]
struct DistrictRows {
    orders: BTreeMap<i64, OneOrder>,
    rows: u64,
}

impl DistrictRows {
    pub fn new_order(&mut self, order: i64) {
        self.rows += 1;
        self.orders.entry(order).or_default().is_new = true;
    }

    pub fn order(&mut self, order: i64, customer: i64, carrier: Option<i64>, lines: i64) {
        self.rows += 1;
        let of = self.orders.entry(order).or_default();
        (of.is_there, of.customer) = (true, customer);
        (of.is_carried, of.lines_said) = (carrier.is_some(), lines);
    }

    pub fn line(&mut self, order: i64, is_delivered: bool, amount: i64) {
        self.rows += 1;
        let of = self.orders.entry(order).or_default();
        of.lines += 1;
        if is_delivered {
            of.lines_delivered += 1;
            of.delivered_amount += amount;
        }
    }

    /// Rows that were read.
    pub fn count(&self) -> u64 {
        self.rows
    }

    /// The numbers of orders, carried orders, new orders and lines, and of the lines that the
    /// orders record.
    pub fn numbers(&self) -> [i64; 5] {
        let sum = |of: fn(&OneOrder) -> i64| self.orders.values().map(of).sum();
        [
            sum(|order| order.is_there.into()),
            sum(|order| (order.is_there && order.is_carried).into()),
            sum(|order| order.is_new.into()),
            sum(|order| order.lines),
            sum(|order| order.lines_said),
        ]
    }

    /// What was delivered of each order, by customer.
    pub fn delivered(&self) -> impl Iterator<Item = (i64, i64)> {
        self.orders.values().map(|order| (order.customer, order.delivered_amount))
    }
}

/// A district with its next number of an order.
struct District<'a> {
    pub rows: &'a DistrictRows,
    pub next: i64,
}

impl District<'_> {
    /// Judges conditions 2 to 7 and 11.
    pub fn judge(&self, checked: &mut CheckResult, place: &str, is_fresh: bool) {
        let orders = &self.rows.orders;
        let of = |is: fn(&OneOrder) -> bool| {
            let numbers = orders.iter().filter(move |(_, order)| is(order));
            numbers.map(|(number, _)| *number).collect::<Vec<i64>>()
        };
        let (known, new) = (of(|order| order.is_there), of(|order| order.is_new));
        let last = known.last().copied().unwrap_or_default();
        let next = (self.next - 1, "D_NEXT_O_ID - 1");
        checked.compare(2, &place, next, (last, "the greatest O_ID"));
        if let (Some(first), Some(last)) = (new.first(), new.last()) {
            checked.compare(2, &place, next, (*last, "the greatest NO_O_ID"));
            let rows = (new.len() as i64, "rows of NEW-ORDER");
            checked.compare(3, &place, rows, (last - first + 1, "the range of NO_O_ID"));
        }
        let said: i64 = orders.values().map(|order| order.lines_said).sum();
        let lines: i64 = orders.values().map(|order| order.lines).sum();
        checked.compare(4, &place, (said, "the sum of O_OL_CNT"), (lines, "rows of ORDER-LINE"));
        for (number, order) in orders {
            order.judge(checked, place, *number);
        }
        let carried = of(|order| order.is_there && order.is_carried).len() as i64;
        let expected = match is_fresh {
            true => (DELIVERED_AT_FIRST, "2100"),
            false => (carried, "delivered orders"),
        };
        let rest = (known.len() as i64 - new.len() as i64, "orders - new orders");
        checked.compare(11, &place, rest, expected);
    }
}

impl OneOrder {
    fn judge(&self, checked: &mut CheckResult, place: &str, number: i64) {
        let place = format!("{place}, order {number}");
        if !self.is_there || self.is_carried == self.is_new {
            checked.violated(5, || {
                let Self { is_there, is_carried, is_new, .. } = self;
                format!("{place}: in ORDER {is_there}, carrier {is_carried}, NEW-ORDER {is_new}")
            });
        }
        let said = (self.lines_said, "O_OL_CNT");
        checked.compare(6, &place, said, (self.lines, "rows of ORDER-LINE"));
        let expected = if self.is_carried { self.lines } else { 0 };
        let of = "lines of delivered orders";
        checked.compare(7, &place, (self.lines_delivered, "delivered lines"), (expected, of));
    }
}

// How many rows the tables have, and how many they must have (clauses 1.2.1 and 4.3.3).
//
// Invariant: conditions that compare rows with each other hold over rows that are missing on both
// sides; a count is what finds those.

/// Warehouses that are checked before tables count as loaded: the first, the last, and others
/// between.
const WAREHOUSES_MAX: i64 = 32;

/// The rows of every table.
pub(super) struct Counts(pub Vec<TableCount>);

impl Counts {
    pub fn new() -> Self {
        let tables = &schema().tables[..TableId::Dataset.number()];
        Self(tables.iter().map(|table| TableCount::new(&table.name)).collect())
    }

    pub fn of(&mut self, table: TableId) -> &mut TableCount {
        &mut self.0[table.number()]
    }
}

/// The tables whose rows transactions neither add nor remove, with a column that has the number of
/// the warehouse, and how many rows each warehouse has.
const FIXED: [(TableId, &str, i64); 4] = [
    (TableId::Warehouse, "w_id", 1),
    (TableId::District, "d_w_id", DISTRICTS),
    (TableId::Customer, "c_w_id", DISTRICTS * CUSTOMERS),
    (TableId::Stock, "s_w_id", ITEMS),
];

/// Counts rows of a warehouse in tables of fixed size: a column that has its number in each of them
/// is summed up, which a server does without sending rows.
struct FixedCounts([OpId; FIXED.len()]);

impl FixedCounts {
    pub fn declare(d: &mut OperationSet<'_>) -> Self {
        Self(FIXED.map(|(table, column, _)| d.sum("rows of a warehouse", table, column)))
    }

    pub fn stock(&self, session: &mut dyn Session, warehouse: i64) -> Result<i64, TargetError> {
        self.count(session, FIXED.len() - 1, warehouse)
    }

    fn count(
        &self,
        session: &mut dyn Session,
        at: usize,
        warehouse: i64,
    ) -> Result<i64, TargetError> {
        let mut rows = Rows::default();
        session.run(self.0[at], &[Value::Int(warehouse)], &mut rows)?;
        let sum = match rows.is_empty() {
            true => Value::Null,
            false => rows.get(0, 0),
        };
        Ok(if sum.is_null() { 0 } else { sum.int() / warehouse })
    }
}

/// What is missing of tables that are to be used: the rows of fixed number, in some warehouses.
///
/// # Errors
/// The target's error.
pub(super) fn missing(target: &dyn Target, warehouses: i64) -> Result<Option<String>, TargetError> {
    let schema = Arc::new(schema());
    let mut d = OperationSet::new(&schema);
    let fixed = FixedCounts::declare(&mut d);
    let options = SessionOptions { ops: d.done(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    let looked = warehouses.clamp(1, WAREHOUSES_MAX);
    let mut counts = Counts::new();
    for nth in 0..looked {
        let warehouse = 1 + nth * (warehouses - 1) / (looked - 1).max(1);
        for (at, (table, _, expected)) in FIXED.into_iter().enumerate() {
            let rows = fixed.count(&mut *session, at, warehouse)?;
            let place = || format!("warehouse {warehouse}");
            counts.of(table).note(place, rows, expected);
        }
    }
    session.rollback()?;
    let wrong: Vec<String> = counts.0.iter().filter(|count| !count.is_ok()).map(said).collect();
    Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
}

fn said(count: &TableCount) -> String {
    format!("{} has {}", count.table, count.told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound district of four orders, the last one new.
    fn sound() -> DistrictRows {
        let mut rows = DistrictRows::default();
        for order in 1..=4 {
            let is_new = order == 4;
            rows.order(order, order, (!is_new).then_some(7), 2);
            (0..2).for_each(|_| rows.line(order, !is_new, 10));
            if is_new {
                rows.new_order(order);
            }
        }
        rows
    }

    fn violated(rows: &DistrictRows, next: i64) -> Vec<usize> {
        let mut checked = CheckResult::specified(crate::tpcc::CONDITIONS);
        District { rows, next }.judge(&mut checked, "here", false);
        let all = checked.conditions.iter().zip(1..);
        all.filter(|(condition, _)| condition.violations > 0).map(|(_, number)| number).collect()
    }

    #[test]
    fn a_sound_district_is_sound() {
        let rows = sound();
        assert_eq!(violated(&rows, 5), [0; 0]);
        assert_eq!(rows.count(), 13);
        assert_eq!(rows.delivered().map(|(_, amount)| amount).sum::<i64>(), 60);
    }

    #[test]
    fn each_defect_is_found_by_its_condition() {
        assert_eq!(violated(&sound(), 6), [2]);
        let mut rows = sound();
        rows.new_order(2);
        assert_eq!(violated(&rows, 5), [3, 5, 11], "delivered and still new");
        let mut rows = sound();
        rows.line(1, true, 10);
        assert_eq!(violated(&rows, 5), [4, 6]);
        let mut rows = sound();
        rows.line(1, true, 10);
        rows.orders.get_mut(&2).unwrap().lines -= 1;
        assert_eq!(violated(&rows, 5), [6, 7], "the sums agree, the orders do not");
        let mut rows = sound();
        rows.orders.get_mut(&3).unwrap().is_carried = false;
        assert_eq!(violated(&rows, 5), [5, 7, 11]);
        let mut rows = sound();
        rows.orders.get_mut(&4).unwrap().is_new = false;
        assert_eq!(violated(&rows, 5), [5, 11], "neither new nor delivered");
        let mut rows = sound();
        rows.orders.get_mut(&1).unwrap().lines_delivered = 1;
        assert_eq!(violated(&rows, 5), [7]);
    }
}
