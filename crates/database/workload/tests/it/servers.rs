//! The same workloads on real servers: those of `IOSTRATA_TEST_SERVERS` (addresses with rights to
//! make databases, separated by `;`), else a private one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iostrata_database::target::{
    Access, ColumnType, Isolation, Op, OpId, Rows, SessionOptions, Target,
};
use iostrata_server::private::ServerTurn;
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use iostrata_workload::compat::{self, CompatSpec, CompatTerminals};
use iostrata_workload::insert::{self, InsertSpec, InsertTerminals};
use iostrata_workload::oltp::{self, Member, OltpSpec, OltpTerminals};
use iostrata_workload::stress::StressTerminals;
use iostrata_workload::tpcc::{
    self, CheckPlan, Dataset, Mix, PrepareOptions, TerminalOptions, Terminals,
};

use crate::stress::{GO_ON, broken};
use crate::{private_server, run, terminal_options};

/// A database of its own on every server, all at the same time.
fn on_every_server(database: &str, test: impl Fn(&ServerTarget) + Sync) {
    let servers = std::env::var("IOSTRATA_TEST_SERVERS").unwrap_or_default();
    let servers: Vec<&str> = servers.split(';').filter(|server| !server.is_empty()).collect();
    if servers.is_empty() {
        let Some(server) = private_server() else { return };
        test(&server.target(database).unwrap());
    }
    let on = |server: &str| {
        let address: ServerAddress = server.parse().unwrap();
        let mut address = Credentials::default().complete(address).unwrap();
        let _turn = ServerTurn::wait(&address, false).unwrap();
        address.database = Some(database.to_owned());
        ServerTarget::create_database(address.clone()).unwrap();
        let target = ServerTarget::open(address, None).unwrap();
        eprintln!("{database} on {}", target.version().name());
        test(&target);
    };
    std::thread::scope(|scope| {
        for server in servers {
            let on = &on;
            scope.spawn(move || on(server));
        }
    });
}

#[test]
fn all_conditions_hold_on_servers_after_the_load_and_after_a_run() {
    on_every_server("iostrata_test_tpcc", |target| {
        let options = PrepareOptions {
            warehouses: 1,
            threads: 2,
            seed: 3,
            now_s: 1_700_000_000,
            reset: true,
        };
        tpcc::prepare(target, &options, &AtomicBool::new(false), &|_| {}).unwrap();
        let mut dataset = Dataset::ready(target).unwrap();
        let plan = CheckPlan { warehouses: 1, is_fresh: true };
        let fresh = tpcc::check(target, plan, &mut |_| {}).unwrap();
        assert!(fresh.is_ok(), "{fresh:?}");
        dataset.mark_used(target).unwrap();
        let options =
            TerminalOptions { mix: Mix::Weights([30, 30, 10, 20, 10]), ..terminal_options(true) };
        for as_text in [false, true] {
            let options = TerminalOptions { as_text, seed: 7 + u64::from(as_text), ..options };
            let terminals = Terminals::new(target, &dataset, options);
            assert_eq!(run(&terminals, 2, 50).settled, 200);
        }
        let used = tpcc::check(target, CheckPlan { is_fresh: false, ..plan }, &mut |_| {});
        let used = used.unwrap();
        assert!(used.is_ok(), "{used:?}");
        assert!(tpcc::cleanup(target).unwrap());
    });
}

#[test]
fn the_oltp_family_runs_on_servers() {
    on_every_server("iostrata_test_oltp", |target| {
        let of = |member| OltpSpec { tables: 2, table_size: 1_000, ..OltpSpec::new(member) };
        let spec = of(Member::ReadWrite);
        oltp::cleanup(target, &spec).unwrap();
        oltp::prepare(target, &spec, 2, &AtomicBool::new(false), &|_| {}).unwrap();
        for member in Member::ALL.into_iter().filter(|member| *member != Member::BulkInsert) {
            let terminals = OltpTerminals::new(target, of(member), true).unwrap();
            assert_eq!(run(&terminals, 2, 20).settled, 80, "{}", member.name());
        }
        assert_eq!(oltp::cleanup(target, &spec).unwrap(), 2);
        let bulk = OltpSpec { threads: 4, ..of(Member::BulkInsert) };
        oltp::prepare(target, &bulk, 2, &AtomicBool::new(false), &|_| {}).unwrap();
        for _ in 0..2 {
            let terminals = OltpTerminals::new(target, bulk.clone(), true).unwrap();
            assert_eq!(run(&terminals, 2, 5).settled, 20);
        }
        assert_eq!(oltp::cleanup(target, &spec).unwrap(), 2, "tables of either shape");
    });
}

/// The rows of a table.
fn count(target: &ServerTarget, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    let access = Access::Statement { sql, gives: vec![ColumnType::Int { bytes: 8 }] };
    let ops = [Op { name: "count", table: 0, access }].into();
    let options = SessionOptions { ops, autocommit: true, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(compat::schema(1)), &options).unwrap();
    let mut rows = Rows::new(1);
    session.run(OpId(0), &[], &mut rows).unwrap();
    rows.get(0, 0).int()
}

#[test]
fn the_load_of_sysbench_tpcc_runs_on_servers() {
    // A warehouse of the kit's size takes a server most of a minute.
    let small = CompatSpec { scale: 2, customers: 100, items: 1_000, ..CompatSpec::default() };
    let full = CompatSpec { scale: 2, ..CompatSpec::default() };
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some();
    let spec = CompatSpec { seed: 5, ..if is_long { full } else { small } };
    let CompatSpec { scale, customers, items, .. } = spec;
    on_every_server("iostrata_test_kit", |target| {
        compat::cleanup(target, 1).unwrap();
        let how = (2, 1_700_000_000);
        let loaded = compat::prepare(target, &spec, how, &AtomicBool::new(false), &|_, _| {});
        let per_district = |count: i64| scale * 10 * count;
        let rows = [
            ("item1", items),
            ("warehouse1", scale),
            ("district1", per_district(1)),
            ("customer1", per_district(customers)),
            ("stock1", scale * items),
            ("orders1", per_district(customers)),
            ("history1", per_district(customers)),
            ("new_orders1", per_district(3 * customers / 10)),
        ];
        for (table, rows) in rows {
            assert_eq!(count(target, table), rows, "{table}");
        }
        let lines = count(target, "order_line1");
        assert!((5 * per_district(customers)..=15 * per_district(customers)).contains(&lines));
        let others = rows.iter().map(|(_, rows)| rows).sum::<i64>();
        assert_eq!(loaded.unwrap().rows as i64, others + lines);
        let terminals = CompatTerminals::new(target, spec, Isolation::RepeatableRead).unwrap();
        assert_eq!(run(&terminals, 2, 100).settled, 400);
        assert_eq!(compat::cleanup(target, 1).unwrap(), 9);
        let schema = compat::schema(1);
        assert!(target.present(&schema).unwrap().is_empty());
    });
}

#[test]
fn objects_keep_their_history_on_servers() {
    use iostrata_workload::stress;
    on_every_server("iostrata_test_stress", |target| {
        let spec = crate::stress::small();
        stress::prepare(target, &spec, (2, true), &GO_ON, &|_, _| {}).unwrap();
        assert_eq!(broken(&crate::stress::check(target)), [0; 0]);
        let source = StressTerminals::new(target, spec, true).unwrap();
        assert_eq!(run(&source, 4, 50).settled, 400);
        let checked = crate::stress::check(target);
        assert_eq!((broken(&checked), checked.rows), (vec![], 1_470));
        stress::prepare(target, &crate::stress::small(), (2, true), &GO_ON, &|_, _| {}).unwrap();
        crate::stress::damage(target);
        assert!(stress::cleanup(target).unwrap());
    });
}

#[test]
fn rows_are_inserted_into_servers() {
    on_every_server("iostrata_test_insert", |target| {
        let spec = InsertSpec { rows: 5_000, ..InsertSpec::default() };
        insert::prepare(target, &spec, true, &GO_ON, &|_| {}).unwrap();
        assert_eq!(broken(&crate::insert::check(target)), [0; 0]);
        let mut rows = 5_000;
        for (rows_per_commit, turns) in [(1, 50), (7, 20), (2_500, 1)] {
            let spec = InsertSpec { rows_per_commit, ..spec.clone() };
            let source = InsertTerminals::new(target, &spec, true).unwrap();
            rows += run(&source, 2, turns).settled * u64::from(rows_per_commit);
        }
        let checked = crate::insert::check(target);
        assert_eq!((broken(&checked), checked.rows), (vec![], rows));
        crate::insert::damage(target);
        assert!(insert::cleanup(target).unwrap());
    });
}
