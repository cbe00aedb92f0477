//! What is ordered, by whom: drawn with the skew of TPC-C.

use crate::tables::{CUSTOMERS, DISTRICTS, ITEMS, ORDERS, WAREHOUSES};

/// Lines of an order that is placed or read.
pub const ORDER_LINES: usize = 6;

/// One transaction.
#[derive(Clone, Copy, Debug)]
pub struct OrderDraw {
    pub place: (i64, i64),
    pub customer: i64,
    pub payer: i64,
    pub items: [i64; ORDER_LINES],
    /// How far back the order lies that is read.
    pub back: i64,
}

/// Numbers that repeat with their seed.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, count: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % count as u64) as i64
    }

    fn skewed(&mut self, mask: i64, count: i64) -> i64 {
        (self.below(mask + 1) | self.below(count)) % count
    }

    pub fn next(&mut self) -> OrderDraw {
        let mut items = [-1; ORDER_LINES];
        for at in 0..ORDER_LINES {
            while items[at] < 0 || items[..at].contains(&items[at]) {
                items[at] = self.skewed(8_191, ITEMS);
            }
        }
        OrderDraw {
            place: (self.below(WAREHOUSES), self.below(DISTRICTS)),
            customer: self.skewed(1_023, CUSTOMERS),
            payer: self.skewed(1_023, CUSTOMERS),
            items,
            back: 1 + self.below(ORDERS - 1),
        }
    }
}
