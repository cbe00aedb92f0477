//! The tables of the orders: keys, values, and what is loaded.
//!
//! Invariants: keys ascend with the numbers in them, and within one table all have one length; a
//! value is determined by its key and the words that are set in it; values do not compress.

use crate::keys::Numbers;

/// Bytes of the longest key, its table's number included.
pub const KEY_BYTES_MAX: usize = 10;
/// Districts of a warehouse.
pub const DISTRICTS: u8 = 10;
/// Orders of each district that are loaded.
pub const ORDERS: u32 = 3_000;
/// Of them, the newest ones that are not delivered yet.
pub const OPEN_ORDERS: u32 = 900;
/// Lines of every order.
pub const LINES: u8 = 6;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// One row per warehouse.
    Warehouse,
    /// Ten rows per warehouse.
    District,
    /// People who order and pay.
    Customer,
    /// What can be ordered, in all warehouses.
    Item,
    /// How much of each item a warehouse has.
    Stock,
    /// All orders.
    Order,
    /// Orders that are not delivered yet.
    NewOrder,
    /// Items of each order.
    OrderLine,
    /// Payments.
    History,
}

impl Relation {
    /// All, by their numbers.
    pub const ALL: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::Item,
        Self::Stock,
        Self::Order,
        Self::NewOrder,
        Self::OrderLine,
        Self::History,
    ];

    /// As an engine with several tables calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Customer => "customer",
            Self::Item => "item",
            Self::Stock => "stock",
            Self::Order => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
            Self::History => "history",
        }
    }

    /// Bytes of a value: with the key about those of a row of TPC-C.
    pub fn value_bytes(self) -> usize {
        match self {
            Self::Warehouse => 88,
            Self::District => 93,
            Self::Customer => 649,
            Self::Item => 78,
            Self::Stock => 301,
            Self::Order => 24,
            Self::NewOrder => 4,
            Self::OrderLine => 50,
            Self::History => 40,
        }
    }
}

/// A key: the table's number, then what identifies the row within the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowKey {
    bytes: [u8; KEY_BYTES_MAX],
    len: usize,
}

impl RowKey {
    fn of(relation: Relation, parts: &[&[u8]]) -> Self {
        let mut key = Self { bytes: [0; KEY_BYTES_MAX], len: 1 };
        key.bytes[0] = relation as u8;
        for part in parts {
            key.bytes[key.len..key.len + part.len()].copy_from_slice(part);
            key.len += part.len();
        }
        key
    }

    /// A warehouse.
    pub fn warehouse(warehouse: u8) -> Self {
        Self::of(Relation::Warehouse, &[&[warehouse]])
    }

    /// A district.
    pub fn district((warehouse, district): (u8, u8)) -> Self {
        Self::of(Relation::District, &[&[warehouse, district]])
    }

    /// A customer of a district.
    pub fn customer((warehouse, district): (u8, u8), customer: u32) -> Self {
        Self::of(Relation::Customer, &[&[warehouse, district], &customer.to_be_bytes()])
    }

    /// An item.
    pub fn item(item: u32) -> Self {
        Self::of(Relation::Item, &[&item.to_be_bytes()])
    }

    /// What a warehouse has of an item.
    pub fn stock(warehouse: u8, item: u32) -> Self {
        Self::of(Relation::Stock, &[&[warehouse], &item.to_be_bytes()])
    }

    /// An order of a district.
    pub fn order((warehouse, district): (u8, u8), order: u32) -> Self {
        Self::of(Relation::Order, &[&[warehouse, district], &order.to_be_bytes()])
    }

    /// An order that is not delivered.
    pub fn new_order((warehouse, district): (u8, u8), order: u32) -> Self {
        Self::of(Relation::NewOrder, &[&[warehouse, district], &order.to_be_bytes()])
    }

    /// A line of an order.
    pub fn line((warehouse, district): (u8, u8), order: u32, line: u8) -> Self {
        Self::of(Relation::OrderLine, &[&[warehouse, district], &order.to_be_bytes(), &[line]])
    }

    /// A payment.
    pub fn history(payment: u64) -> Self {
        Self::of(Relation::History, &[&payment.to_be_bytes()])
    }

    /// Its table.
    pub fn relation(&self) -> Relation {
        Relation::ALL[usize::from(self.bytes[0])]
    }

    /// With the table's number: for engines that keep all rows in one table.
    pub fn whole(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Without: for engines that keep a table for each.
    pub fn within(&self) -> &[u8] {
        &self.bytes[1..self.len]
    }

    /// Fills `value` for this row; the words come first.
    pub fn fill(&self, words: &[u32], value: &mut Vec<u8>) {
        value.clear();
        let mut seed = [0; 8];
        let tail = self.len.saturating_sub(seed.len());
        seed[..self.len - tail].copy_from_slice(&self.bytes[tail..self.len]);
        let mut numbers = Numbers::new(u64::from_le_bytes(seed));
        let bytes = self.relation().value_bytes();
        words.iter().for_each(|word| value.extend_from_slice(&word.to_le_bytes()));
        while value.len() < bytes {
            value.extend_from_slice(&numbers.draw().to_le_bytes());
        }
        value.truncate(bytes);
    }
}

/// The word at this place of a value; 0 when the value is too short.
pub fn word(value: &[u8], at: usize) -> u32 {
    let bytes = value.get(4 * at..4 * at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    bytes.map_or(0, u32::from_le_bytes)
}

/// Changes the word at this place of a value, if it is long enough.
pub fn change_word(value: &mut [u8], at: usize, change: impl FnOnce(u32) -> u32) {
    let new = change(word(value, at)).to_le_bytes();
    if let Some(bytes) = value.get_mut(4 * at..4 * at + 4) {
        bytes.copy_from_slice(&new);
    }
}

/// How much is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u8,
    /// Items; each warehouse has stock of all.
    pub items: u32,
    /// Customers of each district.
    pub customers: u32,
}

impl Scale {
    /// Four warehouses as large as those of TPC-C, or a tenth of that.
    pub fn new(is_quick: bool) -> Self {
        let shrink = if is_quick { 10 } else { 1 };
        Self { warehouses: 4, items: 100_000 / shrink, customers: 3_000 / shrink }
    }

    fn districts(self) -> impl Iterator<Item = (u8, u8)> {
        (0..self.warehouses)
            .flat_map(|warehouse| (0..DISTRICTS).map(move |district| (warehouse, district)))
    }

    /// The keys of a table with the words of their rows, ascending.
    fn keys(self, relation: Relation) -> Box<dyn Iterator<Item = (RowKey, Vec<u32>)>> {
        let orders = move |from| {
            self.districts().flat_map(move |place| (from..ORDERS).map(move |order| (place, order)))
        };
        match relation {
            Relation::Warehouse => {
                Box::new((0..self.warehouses).map(|one| (RowKey::warehouse(one), Vec::new())))
            }
            Relation::District => {
                Box::new(self.districts().map(|place| (RowKey::district(place), vec![ORDERS])))
            }
            Relation::Customer => Box::new(self.districts().flat_map(move |place| {
                (0..self.customers).map(move |one| (RowKey::customer(place, one), vec![0, 0]))
            })),
            Relation::Item => {
                Box::new((0..self.items).map(|item| (RowKey::item(item), vec![item])))
            }
            Relation::Stock => Box::new((0..self.warehouses).flat_map(move |warehouse| {
                (0..self.items).map(move |item| (RowKey::stock(warehouse, item), vec![100, 0, 0]))
            })),
            Relation::Order => {
                Box::new(orders(0).map(|(place, order)| (RowKey::order(place, order), vec![order])))
            }
            Relation::NewOrder => Box::new(
                orders(ORDERS - OPEN_ORDERS)
                    .map(|(place, order)| (RowKey::new_order(place, order), Vec::new())),
            ),
            Relation::OrderLine => Box::new(orders(0).flat_map(|(place, order)| {
                (0..LINES).map(move |line| (RowKey::line(place, order, line), vec![order]))
            })),
            Relation::History => Box::new((0..1).map(|_| (RowKey::history(0), vec![0]))),
        }
    }

    /// The rows of a table, ascending.
    pub fn rows(self, relation: Relation) -> impl Iterator<Item = (RowKey, Vec<u8>)> {
        self.keys(relation).map(|(key, words)| {
            let mut value = Vec::new();
            key.fill(&words, &mut value);
            (key, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_ascend_over_all_tables_and_have_the_sizes_they_should() {
        let scale = Scale { warehouses: 2, items: 30, customers: 20 };
        let mut last = Vec::new();
        for relation in Relation::ALL {
            let mut rows = 0;
            for (key, value) in scale.rows(relation) {
                assert!(key.whole() > &last[..] && key.relation() == relation);
                assert_eq!(
                    (value.len(), key.within()),
                    (relation.value_bytes(), &key.whole()[1..])
                );
                last = key.whole().to_vec();
                rows += 1;
            }
            let districts = 2 * u32::from(DISTRICTS);
            let expected = match relation {
                Relation::Warehouse => 2,
                Relation::District => districts,
                Relation::Customer => districts * 20,
                Relation::Item => 30,
                Relation::Stock => 60,
                Relation::Order => districts * ORDERS,
                Relation::NewOrder => districts * OPEN_ORDERS,
                Relation::OrderLine => districts * ORDERS * u32::from(LINES),
                Relation::History => 1,
            };
            assert_eq!(rows, expected, "{relation:?}");
        }
        let row_bytes = |key: RowKey| key.within().len() + key.relation().value_bytes();
        assert_eq!(row_bytes(RowKey::stock(0, 0)), 306);
        assert_eq!(row_bytes(RowKey::customer((0, 0), 0)), 655);
    }

    #[test]
    fn words_are_found_where_they_were_set() {
        let mut value = Vec::new();
        RowKey::district((1, 2)).fill(&[7], &mut value);
        assert_eq!(word(&value, 0), 7);
        change_word(&mut value, 1, |_| 9);
        assert_eq!((word(&value, 0), word(&value, 1), word(&value, 1_000)), (7, 9, 0));
    }
}
