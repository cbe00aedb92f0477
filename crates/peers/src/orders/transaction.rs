//! One transaction: an order is placed, an older one is delivered, a customer pays.
//!
//! Invariant: it has 34 operations on rows, 18 of which write; the table of them is in README.md.

use super::rows::{DISTRICTS, LINES, OPEN_ORDERS, ORDERS, RowKey, Scale, change_word, word};
use super::store::{RowError, Rows};
use crate::keys::Numbers;

/// As in TPC-C: what the skew of customers and of items is made of.
const CUSTOMER_MASK: u64 = 1_023;
const ITEM_MASK: u64 = 8_191;

/// What is ordered, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Warehouse and district.
    pub place: (u8, u8),
    /// Who orders.
    pub customer: u32,
    /// Who pays for an older order.
    pub payer: u32,
    /// What; all different.
    pub items: [u32; LINES as usize],
    /// How far back the order lies whose lines are looked at.
    pub back: u32,
    /// Number of the payment; no other has it.
    pub payment: u64,
}

/// The orders of one thread.
#[derive(Clone, Debug)]
pub struct Orders {
    scale: Scale,
    numbers: Numbers,
    payment: u64,
}

impl Orders {
    /// The orders of a seed; no two of one store have the same.
    pub fn new(scale: Scale, seed: u64) -> Self {
        // The seed is mixed, so that the streams of neighbouring seeds do not run into each other.
        Self { scale, numbers: Numbers::new(Numbers::new(seed).draw()), payment: seed << 32 }
    }

    /// The next one.
    pub fn draw(&mut self) -> NewOrder {
        self.payment += 1;
        let place = (
            self.numbers.below(u64::from(self.scale.warehouses)) as u8,
            self.numbers.below(u64::from(DISTRICTS)) as u8,
        );
        let customers = u64::from(self.scale.customers);
        let customer = self.skewed(CUSTOMER_MASK, customers);
        let payer = self.skewed(CUSTOMER_MASK, customers);
        let mut items = [u32::MAX; LINES as usize];
        for at in 0..items.len() {
            let mut item = self.skewed(ITEM_MASK, u64::from(self.scale.items));
            while items[..at].contains(&item) {
                item = self.skewed(ITEM_MASK, u64::from(self.scale.items));
            }
            items[at] = item;
        }
        let back = 1 + self.numbers.below(u64::from(ORDERS - 1)) as u32;
        NewOrder { place, customer, payer, items, back, payment: self.payment }
    }

    /// `NURand` of TPC-C, from 0: some are drawn more often than others.
    fn skewed(&mut self, mask: u64, count: u64) -> u32 {
        ((self.numbers.below(mask + 1) | self.numbers.below(count)) % count) as u32
    }
}

/// Memory that transactions of one thread use again.
#[derive(Debug, Default)]
pub struct Scratchpad {
    value: Vec<u8>,
    seen: u64,
}

/// Runs the operations; gives the number of the order.
///
/// # Errors
/// A conflict, after which it is run again; the error of the engine; rows that are not there.
pub fn run(order: &NewOrder, rows: &mut dyn Rows, pad: &mut Scratchpad) -> Result<u32, RowError> {
    let place = order.place;
    let mut number = 0;
    // First: a snapshot taken before the lock may not show the orders that the last holder placed.
    modify(rows, RowKey::district(place), &mut |district| {
        number = word(district, 0);
        change_word(district, 0, |number| number + 1);
    })?;
    read(rows, pad, RowKey::warehouse(place.0))?;
    read(rows, pad, RowKey::customer(place, order.customer))?;
    insert(rows, pad, RowKey::order(place, number), &[order.customer, order.items[0]])?;
    insert(rows, pad, RowKey::new_order(place, number), &[])?;
    let delivered = number - OPEN_ORDERS;
    if !rows.delete(&RowKey::new_order(place, delivered))? {
        return Err(RowError::Missing(RowKey::new_order(place, delivered)));
    }
    read(rows, pad, RowKey::order(place, delivered))?;
    for (line, &item) in (0..LINES).zip(&order.items) {
        read(rows, pad, RowKey::item(item))?;
        modify(rows, RowKey::stock(place.0, item), &mut |stock| take_from_stock(stock))?;
        insert(rows, pad, RowKey::line(place, number, line), &[item, 5])?;
    }
    modify(rows, RowKey::customer(place, order.payer), &mut |payer| {
        change_word(payer, 0, |paid| paid.wrapping_add(order.items[0]));
        change_word(payer, 1, |payments| payments.wrapping_add(1));
    })?;
    insert(rows, pad, RowKey::history(order.payment), &[order.payer, number])?;
    let earlier = number - order.back;
    read(rows, pad, RowKey::order(place, earlier))?;
    for line in 0..LINES {
        read(rows, pad, RowKey::line(place, earlier, line))?;
    }
    Ok(number)
}

/// Five pieces less, 91 more when it would run out; how many went, and in how many orders.
fn take_from_stock(stock: &mut [u8]) {
    change_word(stock, 0, |pieces| if pieces >= 15 { pieces - 5 } else { pieces + 86 });
    change_word(stock, 1, |sold| sold.wrapping_add(5));
    change_word(stock, 2, |orders| orders.wrapping_add(1));
}

fn read(rows: &mut dyn Rows, pad: &mut Scratchpad, key: RowKey) -> Result<(), RowError> {
    let seen = &mut |value: &[u8]| pad.seen = pad.seen.wrapping_add(u64::from(word(value, 0)));
    if rows.get(&key, seen)? { Ok(()) } else { Err(RowError::Missing(key)) }
}

fn modify(
    rows: &mut dyn Rows,
    key: RowKey,
    change: &mut dyn FnMut(&mut Vec<u8>),
) -> Result<(), RowError> {
    if rows.modify(&key, change)? { Ok(()) } else { Err(RowError::Missing(key)) }
}

fn insert(
    rows: &mut dyn Rows,
    pad: &mut Scratchpad,
    key: RowKey,
    words: &[u32],
) -> Result<(), RowError> {
    key.fill(words, &mut pad.value);
    rows.insert(&key, &pad.value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::orders::rows::Relation;

    /// Rows in memory, and how many operations there were.
    #[derive(Default)]
    struct Counted {
        rows: BTreeMap<Vec<u8>, Vec<u8>>,
        reads: u32,
        writes: u32,
    }

    impl Rows for Counted {
        fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError> {
            self.reads += 1;
            Ok(self.rows.get(key.whole()).inspect(|value| seen(value)).is_some())
        }

        fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError> {
            self.writes += 1;
            assert!(self.rows.insert(key.whole().to_vec(), value.to_vec()).is_none());
            Ok(())
        }

        fn modify(
            &mut self,
            key: &RowKey,
            change: &mut dyn FnMut(&mut Vec<u8>),
        ) -> Result<bool, RowError> {
            self.writes += 1;
            Ok(self.rows.get_mut(key.whole()).map(change).is_some())
        }

        fn delete(&mut self, key: &RowKey) -> Result<bool, RowError> {
            self.writes += 1;
            Ok(self.rows.remove(key.whole()).is_some())
        }
    }

    #[test]
    fn it_has_34_operations_of_which_18_write() {
        let scale = Scale { warehouses: 1, items: 50, customers: 20 };
        let mut rows = Counted::default();
        for relation in Relation::ALL {
            rows.rows
                .extend(scale.rows(relation).map(|(key, value)| (key.whole().to_vec(), value)));
        }
        let loaded = rows.rows.len();
        let (mut orders, mut pad) = (Orders::new(scale, 1), Scratchpad::default());
        let mut numbers = [ORDERS; DISTRICTS as usize];
        for at in 1..=200 {
            let order = orders.draw();
            let number = run(&order, &mut rows, &mut pad).unwrap();
            let expected = &mut numbers[usize::from(order.place.1)];
            assert_eq!(number, *expected, "orders of a district are numbered without a gap");
            *expected += 1;
            assert_eq!((rows.reads, rows.writes), (at * 16, at * 18));
        }
        assert_eq!(rows.rows.len(), loaded + 200 * (1 + usize::from(LINES) + 1));
    }

    #[test]
    fn draws_repeat_with_the_seed_and_are_skewed() {
        let scale = Scale::new(false);
        let draw = |seed| {
            let mut orders = Orders::new(scale, seed);
            (0..20_000).map(|_| orders.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1)[0].items, draw(2)[0].items);
        let mut counts = vec![0_u32; scale.items as usize];
        draw(3).iter().flat_map(|order| order.items).for_each(|item| counts[item as usize] += 1);
        let most = counts.iter().max().copied().unwrap_or(0);
        assert!(most > 10, "an even draw would give each item about once: {most}");
    }
}
