//! The orders of one district, and the conditions that speak of them.

use std::collections::BTreeMap;

use super::DELIVERED_AT_FIRST;
use crate::condition::Checked;

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
pub(super) struct DistrictRows {
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

    /// How many orders, carried orders, new orders and lines there are, and how many lines orders
    /// say that they have.
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
pub(super) struct District<'a> {
    pub rows: &'a DistrictRows,
    pub next: i64,
}

impl District<'_> {
    /// Judges conditions 2 to 7 and 11.
    pub fn judge(&self, checked: &mut Checked, place: &str, is_fresh: bool) {
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
    fn judge(&self, checked: &mut Checked, place: &str, number: i64) {
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
        let mut checked = Checked::specified(crate::tpcc::CONDITIONS);
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
