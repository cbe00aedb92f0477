//! The rows of all tables, and the twelve consistency conditions of clause 3.3.2, over all
//! warehouses.
//!
//! Invariant: everything is read in one transaction, so that all conditions speak of one moment;
//! amounts are whole cents, so that sums are exact. Rows are read once and in order; of customers
//! two sums each are kept, of everything else only the district at hand. It changes nothing.

use std::sync::Arc;

use iostrata_database::target::{OpId, Rows, Session, SessionOptions, Target, TargetError, Value};

use crate::condition::Checked;
use crate::tpcc::counts::{Counts, FixedCounts};
use crate::tpcc::ops::{Declared, ScanBy};
use crate::tpcc::schema::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS, TableId, schema};

mod district;

use district::{District, DistrictRows};

/// How many conditions there are.
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
struct Paid {
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

/// Checks all conditions; `progress` hears of the share that is done.
///
/// # Errors
/// What the target said. Conditions that do not hold are no error.
pub fn check(
    target: &dyn Target,
    plan: CheckPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<Checked, TargetError> {
    let schema = Arc::new(schema());
    let mut d = Declared::new(&schema);
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
/// What the target said; no such district.
pub fn next_order(target: &dyn Target, warehouse: i64, district: i64) -> Result<i64, TargetError> {
    let schema = Arc::new(schema());
    let mut d = Declared::new(&schema);
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

fn scans(d: &mut Declared<'_>) -> Scans {
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
    checked: Checked,
    counts: Counts,
    /// Of every customer, warehouse by warehouse and district by district.
    paid: Vec<Paid>,
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
        let mut checked = Checked::specified(CONDITIONS);
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
            paid: vec![Paid::default(); districts * CUSTOMERS as usize],
            taken: vec![0; districts],
        }
    }

    /// Everything that was found. HISTORY has a row for each payment that a customer has counted,
    /// and those that the load made at least.
    fn done(mut self) -> Checked {
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

    /// Orders are as many as their numbers say, of which none is ever removed; the others follow
    /// from them. A district has those of the load at least.
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
            let paid = at.map_or(Paid::default(), |at| self.paid[at]);
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
