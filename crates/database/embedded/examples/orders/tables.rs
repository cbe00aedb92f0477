//! The nine tables of TPC-C, four warehouses of them, and what is loaded.

use iostrata_database::target::{Column, ColumnType, Index, Rows, Schema, Table, Value};

pub const WAREHOUSES: i64 = 4;
pub const DISTRICTS: i64 = 10;
pub const CUSTOMERS: i64 = 3_000;
pub const ITEMS: i64 = 100_000;
/// Orders of each district, and of them the newest ones that are not delivered.
pub const ORDERS: i64 = 3_000;
pub const OPEN_ORDERS: i64 = 900;
pub const LINES: i64 = 10;

/// Tables; behind them come as many with the same rows, for direct calls.
pub const TABLES: usize = 9;
pub const WAREHOUSE: usize = 0;
pub const DISTRICT: usize = 1;
pub const CUSTOMER: usize = 2;
pub const HISTORY: usize = 3;
pub const NEW_ORDER: usize = 4;
pub const ORDER: usize = 5;
pub const LINE: usize = 6;
pub const ITEM: usize = 7;
pub const STOCK: usize = 8;

/// Columns that transactions change.
pub const NEXT_ORDER: usize = 10;
pub const BALANCE: usize = 16;
pub const PAID: usize = 17;
pub const PAYMENTS: usize = 18;
pub const QUANTITY: usize = 2;
pub const SOLD: usize = 13;
pub const ORDERED: usize = 14;

const TEXT: &[u8; 500] = &[b'x'; 500];

pub fn schema() -> Schema {
    use ColumnType::{Char, DateTime, Decimal, Int, Varchar};
    let money = |digits| Decimal { digits, scale: 2 };
    let rate = Decimal { digits: 4, scale: 4 };
    let (small, medium, large) = (Int { bytes: 1 }, Int { bytes: 2 }, Int { bytes: 4 });
    let place =
        [Varchar(10), Varchar(20), Varchar(20), Varchar(20), Char(2), Char(9), rate, money(12)];
    let table = |name: &str, key: usize, of: &[ColumnType], late: &[usize]| Table {
        name: name.to_owned(),
        columns: of.iter().enumerate().map(|(at, of)| column(at, *of)).collect(),
        key: (0..key).collect(),
        indexes: match late {
            [] => Vec::new(),
            columns => {
                vec![Index { name: "late".into(), columns: columns.to_vec(), is_late: true }]
            }
        },
        auto_increment: false,
    };
    let customer = [
        &[medium, small, large, Varchar(16), Char(2), Varchar(16)][..],
        &[Varchar(20), Varchar(20), Varchar(20), Char(2), Char(9), Char(16), DateTime, Char(2)],
        &[money(12), rate, money(12), money(12), medium, medium, Varchar(500)],
    ]
    .concat();
    let stock =
        [&[medium, large, medium][..], &[Char(24); 10], &[large, medium, medium, Varchar(50)]];
    let tables = vec![
        table("warehouse", 1, &[&[medium][..], &place].concat(), &[]),
        table("district", 2, &[&[medium, small][..], &place, &[large]].concat(), &[]),
        table("customer", 3, &customer, &[0, 1, 5, 3]),
        table(
            "history",
            0,
            &[large, small, medium, small, medium, DateTime, money(6), Varchar(24)],
            &[],
        ),
        table("new_order", 3, &[medium, small, large], &[]),
        table(
            "orders",
            3,
            &[medium, small, large, large, DateTime, small, small, small],
            &[0, 1, 3, 2],
        ),
        table(
            "order_line",
            4,
            &[medium, small, large, small, large, medium, DateTime, small, money(6), Char(24)],
            &[],
        ),
        table("item", 1, &[large, large, Varchar(24), money(5), Varchar(50)], &[]),
        table("stock", 2, &stock.concat(), &[]),
    ];
    let mut schema = Schema { tables };
    for (table, column) in [(ORDER, 5), (LINE, 6)] {
        schema.tables[table].columns[column].is_nullable = true;
    }
    let direct = |table: &Table| Table { name: format!("direct.{}", table.name), ..table.clone() };
    let copies: Vec<Table> = schema.tables.iter().map(direct).collect();
    schema.tables.extend(copies);
    schema
}

fn column(at: usize, of: ColumnType) -> Column {
    Column { name: format!("c{at}"), of, is_nullable: false }
}

/// Rows of a table, a thousand at a time.
pub struct Filler {
    table: usize,
    next: i64,
    count: i64,
}

impl Filler {
    pub fn new(table: usize) -> Self {
        let districts = WAREHOUSES * DISTRICTS;
        let count = match table {
            WAREHOUSE => WAREHOUSES,
            DISTRICT => districts,
            CUSTOMER | HISTORY => districts * CUSTOMERS,
            NEW_ORDER => districts * OPEN_ORDERS,
            ORDER => districts * ORDERS,
            LINE => districts * ORDERS * LINES,
            ITEM => ITEMS,
            _ => WAREHOUSES * ITEMS,
        };
        Self { table, next: 0, count }
    }

    pub fn fill(&mut self, schema: &Schema, rows: &mut Rows) {
        let columns = &schema.tables[self.table].columns;
        rows.clear(columns.len());
        for number in self.next..self.count.min(self.next + 1_000) {
            let key = self.key(number);
            for (at, column) in columns.iter().enumerate() {
                let text = |most: u16| Value::Text(&TEXT[..usize::from(most)]);
                rows.push(match (key.get(at), column.of) {
                    (Some(number), _) => Value::Int(*number),
                    (None, _) if (self.table, at) == (DISTRICT, NEXT_ORDER) => Value::Int(ORDERS),
                    // Half of the customers have a last name of their own.
                    (None, ColumnType::Varchar(16)) => text(9),
                    (None, ColumnType::Varchar(most) | ColumnType::Char(most)) => {
                        text(if most > 30 { most * 4 / 5 } else { most })
                    }
                    (None, _) => Value::Int(10),
                });
            }
        }
        self.next += 1_000;
    }

    /// The first columns: those of the key, and of an order its customer.
    fn key(&self, number: i64) -> Vec<i64> {
        let split = |per: i64| {
            let district = number / per;
            vec![district / DISTRICTS, district % DISTRICTS, number % per]
        };
        match self.table {
            DISTRICT => vec![number / DISTRICTS, number % DISTRICTS],
            CUSTOMER => split(CUSTOMERS),
            HISTORY => vec![number % CUSTOMERS],
            NEW_ORDER => {
                let mut key = split(OPEN_ORDERS);
                key[2] += ORDERS - OPEN_ORDERS;
                key
            }
            ORDER => {
                let mut row = split(ORDERS);
                row.push(number * 7 % CUSTOMERS);
                row
            }
            LINE => {
                let mut key = split(ORDERS * LINES);
                key.push(key[2] % LINES);
                key[2] /= LINES;
                key
            }
            STOCK => vec![number / ITEMS, number % ITEMS],
            _ => vec![number],
        }
    }
}
