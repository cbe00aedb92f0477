//! Transactions by a server's counters, compared with the clients' own counts, on private servers
//! of every installed program, with the binlog and without.

use std::thread;

use iostrata_change::System;
use iostrata_database::target::{ColumnType, Schema, SessionOptions, Target};
use iostrata_server::private::{PrivatePlan, PrivateServer, ServerProgram};
use iostrata_server::{ServerAddress, ServerTarget};

use crate::fixture::{Driven, statement};
use crate::fleet::{Place, programs};

/// Clients at work at the same time, and what each does of one kind.
const CLIENTS: u64 = 4;
const EACH: u64 = 250;
const ROWS: u64 = 400;

/// What one client does in a round.
#[derive(Clone, Copy)]
enum Deed {
    /// BEGIN, SELECT, two UPDATEs, COMMIT.
    Explicit,
    /// The same with ROLLBACK.
    RolledBack,
    /// BEGIN, SELECT, COMMIT.
    ExplicitRead,
    /// Statements outside of transactions.
    Update,
    Insert,
    Delete,
    Select,
}

/// A load: what each client does in each round, and whether counters that are off by default are
/// needed to count its transactions where the server does not count them itself.
type Load = (&'static str, fn(u64) -> Vec<Deed>, bool);

const LOADS: [Load; 10] = [
    ("only explicit", |_| vec![Deed::Explicit], false),
    ("only rolled back", |_| vec![Deed::RolledBack], false),
    ("only updates", |_| vec![Deed::Update], false),
    ("only inserts", |_| vec![Deed::Insert], false),
    ("only deletes", |_| vec![Deed::Delete], false),
    ("only selects", |_| vec![Deed::Select], false),
    (
        "updates beside a few explicit",
        |round| if round % 125 == 0 { vec![Deed::Explicit] } else { vec![Deed::Update; 2] },
        false,
    ),
    ("explicit and updates", |_| vec![Deed::Explicit, Deed::Update], false),
    ("explicit and selects", |_| vec![Deed::Explicit, Deed::Select], true),
    ("explicit reads and inserts", |_| vec![Deed::ExplicitRead, Deed::Insert], true),
];

/// A client with a session for each way.
struct Client {
    explicit: Driven,
    alone: Driven,
    next: u64,
}

impl Client {
    fn open(target: &ServerTarget, number: u64) -> Self {
        let int = || vec![ColumnType::Int { bytes: 8 }];
        let ops = vec![
            statement("SELECT v FROM t WHERE id = ?", int()),
            statement("UPDATE t SET v = v + 1 WHERE id = ?", vec![]),
            statement("INSERT INTO u VALUES (?, 0)", vec![]),
            statement("DELETE FROM u WHERE id = ?", vec![]),
        ];
        let open = |autocommit| {
            let options =
                SessionOptions { ops: ops.clone().into(), autocommit, ..SessionOptions::default() };
            Driven::open(target, &Schema::default(), &options).unwrap()
        };
        Self { explicit: open(false), alone: open(true), next: number * 1_000_000 }
    }

    fn act(&mut self, deed: Deed) {
        self.next += 1;
        // Each client has rows of its own, so that none fails.
        let own = (self.next / 1_000_000 * (ROWS / CLIENTS) + self.next % (ROWS / CLIENTS)) as i64;
        let (row, new) = ([own.into()], [(self.next as i64).into()]);
        let explicit = |driven: &mut Driven, writes: bool, commits: bool| {
            driven.session.begin().unwrap();
            driven.run(0, &row);
            (0..if writes { 2 } else { 0 }).for_each(|_| drop(driven.run(1, &row)));
            if commits {
                let ticket = driven.session.commit().unwrap();
                driven.session.settle(ticket, true).unwrap();
            } else {
                driven.session.rollback().unwrap();
            }
        };
        match deed {
            Deed::Explicit => explicit(&mut self.explicit, true, true),
            Deed::RolledBack => explicit(&mut self.explicit, true, false),
            Deed::ExplicitRead => explicit(&mut self.explicit, false, true),
            Deed::Update => drop(self.alone.run(1, &row)),
            Deed::Insert => drop(self.alone.run(2, &new)),
            Deed::Delete => {
                // Those that the load before has put there.
                let old = self.next as i64 % 1_000_000 - EACH as i64;
                let row = [(self.next as i64 / 1_000_000 * 1_000_000 + old).into()];
                drop(self.alone.run(3, &row));
            }
            Deed::Select => drop(self.alone.run(0, &row)),
        }
    }

    /// How many transactions it was.
    fn work(&mut self, deeds: fn(u64) -> Vec<Deed>) -> u64 {
        let all = (0..EACH).flat_map(deeds).map(|deed| self.act(deed));
        all.count() as u64
    }
}

fn order(target: &ServerTarget, sql: &str) {
    let ops = vec![statement(sql, vec![])];
    let options =
        SessionOptions { ops: ops.into(), autocommit: true, as_text: true, ..Default::default() };
    Driven::open(target, &Schema::default(), &options).unwrap().run(0, &[]);
}

/// Holds the server's count against that of the clients, load by load.
fn counts(server: &PrivateServer, what: &str, has_counters: bool) {
    let address = server.address().replacen("/?", "/shop?", 1).parse::<ServerAddress>().unwrap();
    let target = ServerTarget::open(address, None).unwrap();
    for sql in [
        "DROP TABLE IF EXISTS t, u",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        "CREATE TABLE u (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    ] {
        order(&target, sql);
    }
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    order(&target, &format!("INSERT INTO t VALUES {}", rows.join(", ")));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|one| Client::open(&target, one)).collect();
    let mut sampler = target.sampler().unwrap().unwrap();
    let mut told = || sampler.sample().unwrap().transactions.unwrap();
    told();
    let (mut wrong, mut before) = (Vec::new(), told());
    let is_exact = target.version().numbers >= (8, 0, 0) && target.facts().unwrap().name == "mysql";
    for (name, deeds, needs_counters) in LOADS {
        if needs_counters && !has_counters && !is_exact {
            continue;
        }
        let done: u64 = thread::scope(|scope| {
            let all: Vec<_> =
                clients.iter_mut().map(|one| scope.spawn(move || one.work(deeds))).collect();
            // Not only before and after.
            told();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        let now = told();
        let (counted, off) = (now - before, (now - before) as f64 / done as f64 - 1.0);
        before = now;
        eprintln!("{what}: {name}: {counted} of {done}, {:+.1} %", 100.0 * off);
        if off.abs() > 0.02 {
            wrong.push(format!("{name}: {counted} of {done}"));
        }
    }
    assert!(wrong.is_empty(), "{what}: {}", wrong.join("; "));
}

fn on_program(program: ServerProgram) {
    let place = Place::new();
    let mut session: iostrata_change::Session<System> = place.session();
    let name = program.version.to_string();
    let is_counted = !program.version.is_mariadb && program.version.is_from(8, 0);
    let mut plan = PrivatePlan::new(program, place.path("a"));
    plan.options = vec![
        "--innodb-buffer-pool-size=64M".to_owned(),
        "--innodb-flush-log-at-trx-commit=2".to_owned(),
    ];
    plan.first_statements = vec!["CREATE DATABASE IF NOT EXISTS shop".to_owned()];
    let plan = plan.on_shared_fresh_data().unwrap();
    let mut server = PrivateServer::prepare(&mut session, &plan).unwrap();
    for (binlog, words) in
        [("off", &["--skip-log-bin"][..]), ("on", &["--log-bin=b", "--binlog-format=ROW"])]
    {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        server.run(&mut session, &words).unwrap();
        counts(&server, &format!("{name}, binlog {binlog}"), false);
        let address = server.address().parse::<ServerAddress>().unwrap();
        let target = ServerTarget::open(address, None).unwrap();
        let off = target.counters_off().unwrap();
        // performance_schema counts transactions from MySQL 8.0 on.
        let needs_commits = off.iter().any(|name| name == "trx_rw_commits");
        assert_eq!(needs_commits, !is_counted, "{name}: {off:?}");
        for counter in off.iter().filter(|one| one.starts_with("trx_")) {
            order(&target, &format!("SET GLOBAL innodb_monitor_enable = '{counter}'"));
        }
        counts(&server, &format!("{name}, binlog {binlog}, with counters"), true);
        server.stop(&mut session).unwrap();
    }
    server.remove(&mut session).unwrap();
}

#[test]
fn transactions_of_every_kind_count_once() {
    thread::scope(|scope| {
        for program in programs("transactions_of_every_kind_count_once") {
            scope.spawn(|| on_program(program));
        }
    });
}
