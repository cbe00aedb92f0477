//! Servers for tests: those that are named, or one that is started for the test and ended after it.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{env, thread};

use iostrata_database::target::{
    Access, Column, ColumnType, Index, Op, OpId, Rows, Schema, Session, SessionOptions, Table,
    Target, TargetError, Value,
};
use iostrata_server::private::{ServerTurn, TestServer};
use iostrata_server::{ServerAddress, ServerTarget};

/// A database of its own on a server, removed at the end.
pub struct Place {
    pub address: ServerAddress,
    pub target: ServerTarget,
    _server: Option<Arc<TestServer>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let database = self.address.database.clone().unwrap_or_default();
        let dropped = self.order(&format!("DROP DATABASE `{database}`"));
        assert!(dropped.is_ok() || thread::panicking(), "{dropped:?}");
    }
}

/// Runs a test on every available server at the same time, each in a database of this name; other
/// tests may run there at the same time.
pub fn on_each_server(database: &str, test: impl Fn(&Place) + Sync) {
    on_all(database, false, &test);
}

/// The same for a test that alters or counts what is the server's as a whole: no other one that
/// takes a turn runs there meanwhile.
pub fn alone_on_each_server(database: &str, test: impl Fn(&Place) + Sync) {
    on_all(database, true, &test);
}

fn on_all(database: &str, is_alone: bool, test: &(dyn Fn(&Place) + Sync)) {
    let on = |address: ServerAddress, server: Option<Arc<TestServer>>| {
        let _turn = ServerTurn::wait(&address, is_alone).unwrap();
        eprintln!("{database} on {address}");
        test(&place(address, server, database));
    };
    let named = env::var("IOSTRATA_TEST_SERVERS").unwrap_or_default();
    let named: Vec<&str> = named.split(';').filter(|text| !text.trim().is_empty()).collect();
    if named.is_empty()
        && let Some(server) = shared()
    {
        on(server.address(), Some(server));
    }
    thread::scope(|scope| {
        for address in named {
            let address: ServerAddress = address.trim().parse().unwrap();
            let on = &on;
            scope.spawn(move || on(address, None));
        }
    });
}

/// The server of all tests that run now; without one the reason is printed.
fn shared() -> Option<Arc<TestServer>> {
    static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let Some(server) = TestServer::start().unwrap() else {
        eprintln!("skipped: mariadbd is not installed");
        return None;
    };
    let server = Arc::new(server);
    *shared = Arc::downgrade(&server);
    Some(server)
}

fn place(address: ServerAddress, server: Option<Arc<TestServer>>, database: &str) -> Place {
    let database = format!("iostrata_{database}_{}", std::process::id());
    let address = ServerAddress { database: Some(database), ..address };
    ServerTarget::create_database(address.clone()).unwrap();
    let target = ServerTarget::open(address.clone(), None).unwrap();
    Place { address, target, _server: server }
}

impl Place {
    /// The same database, of which no more is required than of an unknown server.
    pub fn least(&self) -> ServerTarget {
        let address = ServerAddress { asks_least: true, ..self.address.clone() };
        ServerTarget::open(address, None).unwrap()
    }

    /// A session for these operations.
    pub fn session(
        &self,
        schema: &Schema,
        ops: Vec<Op>,
        as_text: bool,
    ) -> Result<Driven, TargetError> {
        self.session_with(schema, SessionOptions { ops: ops.into(), as_text, ..Default::default() })
    }

    /// A session with these options.
    pub fn session_with(
        &self,
        schema: &Schema,
        options: SessionOptions,
    ) -> Result<Driven, TargetError> {
        Driven::open(&self.target, schema, &options)
    }

    /// The tables of a schema, newly made.
    pub fn make(&self, schema: &Schema) {
        for table in 0..schema.tables.len() {
            self.target.remove(schema, table).unwrap();
            self.target.create(schema, table).unwrap();
        }
    }

    /// Runs statements that give nothing, outside any transaction.
    pub fn order(&self, sql: &str) -> Result<(), TargetError> {
        let ops = vec![statement(sql, Vec::new())];
        let options = SessionOptions { ops: ops.into(), autocommit: true, ..Default::default() };
        let mut session = self.session_with(&Schema::default(), options)?;
        session.session.run(OpId(0), &[], &mut Rows::new(0)).map(drop)
    }
}

/// An operation that runs a text.
pub fn statement(sql: &str, gives: Vec<ColumnType>) -> Op {
    let access = Access::Statement { sql: sql.to_owned(), gives };
    Op { name: "statement", table: 0, access }
}

/// A session and what it gave last.
pub struct Driven {
    pub session: Box<dyn Session>,
    pub out: Rows,
}

impl Driven {
    /// A session of a target.
    pub fn open(
        target: &ServerTarget,
        schema: &Schema,
        options: &SessionOptions,
    ) -> Result<Self, TargetError> {
        let session = target.session(&Arc::new(schema.clone()), options)?;
        Ok(Self { session, out: Rows::new(0) })
    }

    /// Runs an operation; gives what it touched and its rows as text.
    pub fn run(&mut self, op: usize, args: &[Value<'_>]) -> (u64, Vec<String>) {
        let touched = self.session.run(OpId(op), args, &mut self.out).unwrap();
        (touched, printed(&self.out))
    }

    /// Its rows only.
    pub fn rows(&mut self, op: usize, args: &[Value<'_>]) -> Vec<String> {
        self.run(op, args).1
    }
}

/// Rows as text, one string each.
pub fn printed(rows: &Rows) -> Vec<String> {
    (0..rows.len())
        .map(|row| rows.row(row).map(|value| format!("{value:?}")).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Whole numbers as arguments.
pub fn ints(numbers: &[i64]) -> Vec<Value<'static>> {
    numbers.iter().copied().map(Value::Int).collect()
}

/// Stock (w, i; quantity, amount, note, since), lines (w, o, n; item, quantity, sold) and a log
/// without a key, or with one that the server counts up.
pub fn schema() -> Schema {
    let int = ColumnType::Int { bytes: 4 };
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let nullable = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: true };
    let plain = |name: &str, columns, key| Table {
        name: name.to_owned(),
        columns,
        key,
        indexes: Vec::new(),
        auto_increment: false,
    };
    let stock = plain(
        "stock",
        vec![
            column("w", int),
            column("i", int),
            column("quantity", int),
            column("amount", ColumnType::Decimal { digits: 12, scale: 2 }),
            column("note", ColumnType::Varchar(50)),
            nullable("since", ColumnType::DateTime),
        ],
        vec![0, 1],
    );
    let mut lines = plain(
        "line",
        vec![
            column("w", int),
            column("o", int),
            column("n", ColumnType::Int { bytes: 1 }),
            column("item", int),
            column("quantity", ColumnType::Int { bytes: 2 }),
            nullable("sold", ColumnType::DateTime),
            column("state", ColumnType::Char(8)),
        ],
        vec![0, 1, 2],
    );
    lines.indexes = vec![
        Index { name: "by_item".to_owned(), columns: vec![3], is_late: false },
        Index { name: "by_state".to_owned(), columns: vec![0, 6], is_late: true },
    ];
    let mut log = plain(
        "log",
        vec![
            column("id", ColumnType::Int { bytes: 8 }),
            nullable("text", ColumnType::Varchar(255)),
        ],
        vec![0],
    );
    log.auto_increment = true;
    let heap = plain("heap", vec![column("w", int), column("x", int)], Vec::new());
    Schema { tables: vec![stock, lines, log, heap] }
}
