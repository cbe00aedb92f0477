//! TPC-C on a cluster of three nodes, one of which is killed under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_change::{Servers, Session, StateDir, System};
use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Op, OpId, Rows, Schema, SessionOptions, Table,
    Target, TargetError, Trouble, Value,
};
use iostrata_server::private::{
    ClusterPlan, PrivateCluster, PrivateServer, ServerProgram, galera_provider,
};
use iostrata_server::{Credentials, HostPort, MySqlServers, ServerAddress, ServerTarget};
use iostrata_workload::tpcc::Terminals;

use crate::kills::{killed, tpcc};
use crate::{one_warehouse, terminal_options, violations};

const DATABASE: &str = "tpcc";

/// The node's database by its socket, without the others.
fn alone(node: &PrivateServer) -> ServerAddress {
    let address: ServerAddress = node.address().parse().unwrap();
    let address = Credentials::default().complete(address).unwrap();
    ServerAddress { database: Some(DATABASE.to_owned()), ..address }
}

/// All nodes as hosts of one target, for a user of the cluster.
fn together(nodes: &[PrivateServer]) -> ServerAddress {
    let host = |node: &PrivateServer| HostPort { host: "127.0.0.1".to_owned(), port: node.port() };
    let user: ServerAddress = format!("mysql://shop@127.0.0.1/{DATABASE}").parse().unwrap();
    ServerAddress { hosts: nodes.iter().map(host).collect(), ..user }
}

fn order(target: &ServerTarget, sql: &str) -> Result<(), TargetError> {
    let access = Access::Statement { sql: sql.to_owned(), gives: Vec::new() };
    let ops = vec![Op { name: "statement", table: 0, access }];
    let options = SessionOptions { ops: ops.into(), autocommit: true, ..Default::default() };
    let mut session = target.session(&Schema::default().into(), &options)?;
    session.run(OpId(0), &[], &mut Rows::new(0)).map(drop)
}

/// Waits until something is as it must be.
fn wait(mut what: impl FnMut() -> Result<(), TargetError>) {
    for _ in 0..300 {
        if what().is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    what().unwrap();
}

/// The cluster with a user who is let in by every node's port.
fn start(session: &mut Session<System>, dir: &std::path::Path) -> Option<PrivateCluster> {
    let Ok(program) = ServerProgram::find("mariadbd") else {
        eprintln!("skipped: mariadbd is not installed");
        return None;
    };
    if galera_provider().is_none() {
        eprintln!("skipped: /usr/lib/galera/libgalera_smm.so is not installed");
        return None;
    }
    let options = ["--innodb-buffer-pool-size=128M", "--innodb-log-file-size=48M"];
    let options = options.map(str::to_owned).to_vec();
    let plan = ClusterPlan { program, dir: dir.join("c"), nodes: 3, options };
    let cluster = PrivateCluster::start(session, &plan).unwrap();
    for node in cluster.nodes() {
        wait(|| ServerTarget::create_database(alone(node)));
    }
    let founder = ServerTarget::open(alone(&cluster.nodes()[0]), None).unwrap();
    order(&founder, "CREATE USER shop@127.0.0.1").unwrap();
    order(&founder, &format!("GRANT ALL ON {DATABASE}.* TO shop@127.0.0.1")).unwrap();
    // The others have the grant a little later.
    for node in cluster.nodes() {
        let shop = together(std::slice::from_ref(node));
        wait(|| order(&ServerTarget::open(shop.clone(), None)?, "DO 1"));
    }
    Some(cluster)
}

#[test]
fn two_nodes_go_on_with_every_acknowledged_order_when_one_of_three_is_killed() {
    let dir = tempfile::TempDir::with_prefix("io-").unwrap();
    let state = StateDir::at(dir.path().join("state"));
    let mut session = Session::begin(&state, System::new()).unwrap();
    let Some(cluster) = start(&mut session, dir.path()) else { return };
    let target = ServerTarget::open(together(cluster.nodes()), None).unwrap();
    let dataset = one_warehouse(&target, 3);
    let terminals = Terminals::new(&target, &dataset, terminal_options(true));
    let figures = killed(&terminals, &tpcc(6, "a private cluster"), 14, || {
        cluster.nodes()[1].kill(&session).unwrap();
    });
    assert!(figures.failure.is_none(), "two of three nodes go on: {:?}", figures.failure);
    let counts = figures.streams[0].transactions.clone().unwrap();
    eprintln!("errors {:?}, retries {}", counts.errors, counts.retries);
    assert!(counts.errors.values().sum::<u64>() >= 1, "{:?}", counts.errors);
    let left = [0, 2].map(|node| violations_on(&cluster.nodes()[node], &terminals));
    assert_eq!(left, [const { Vec::<String>::new() }; 2], "nothing is lost, nothing done twice");
    drop(terminals);
    cluster.remove(&mut session).unwrap();
    let undone = session.undo_all();
    assert!(undone.is_settled() && undone.left.is_empty(), "{undone:?}");
}

/// Rows of two numbers, and operations that each count one up.
fn counters() -> (Schema, Vec<Op>) {
    let of = ColumnType::Int { bytes: 4 };
    let column = |name: &str| Column { name: name.to_owned(), of, is_nullable: false };
    let table = Table {
        name: "counter".to_owned(),
        columns: vec![column("id"), column("value")],
        key: vec![0],
        indexes: Vec::new(),
        auto_increment: false,
    };
    let set = vec![Assign { column: 1, change: Change::AddConst(1) }];
    let count = Access::Modify { prefix: 1, set, returns: Vec::new() };
    let read = Access::Get { columns: vec![1], locks: false };
    let op = |access: &Access| Op { name: "counter", table: 0, access: access.clone() };
    (Schema { tables: vec![table] }, [&count, &count, &read].map(op).to_vec())
}

#[test]
fn a_transaction_that_another_node_ended_goes_on_with_nothing() {
    let dir = tempfile::TempDir::with_prefix("io-").unwrap();
    let state = StateDir::at(dir.path().join("state"));
    let mut session = Session::begin(&state, System::new()).unwrap();
    let Some(cluster) = start(&mut session, dir.path()) else { return };
    let [one, other] = [0, 1].map(|node| {
        let node = &cluster.nodes()[node];
        MySqlServers::default().set_variable(&node.address(), "wsrep_sync_wait", "1").unwrap();
        ServerTarget::open(alone(node), None).unwrap()
    });
    let (schema, ops) = counters();
    one.create(&schema, 0).unwrap();
    order(&one, "INSERT INTO counter VALUES (1, 0), (2, 0)").unwrap();
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let mut first = one.session(&schema.into(), &options).unwrap();
    let mut out = Rows::default();
    let mut run = |op: usize, key: i64| {
        let found = first.run(OpId(op), &[Value::Int(key)], &mut out);
        found.map(|_| (!out.is_empty()).then(|| out.get(0, 0).int()))
    };
    run(0, 1).unwrap();
    // The other node wins; only then the next operation runs, for the first time.
    order(&other, "UPDATE counter SET value = 100 WHERE id = 1").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let next = run(1, 2);
    assert_eq!(next.map_err(|error| error.trouble), Err(Trouble::Retry));
    assert_eq!((run(2, 1).unwrap(), run(2, 2).unwrap()), (Some(100), Some(0)));
    drop(first);
    committed_whole(&one, &other);
    cluster.remove(&mut session).unwrap();
}

/// Counts two rows up in each of many transactions, with statements between that never ran before,
/// while another node changes the first row: both count the same.
fn committed_whole(one: &ServerTarget, other: &ServerTarget) {
    order(one, "CREATE TABLE whole (id INT PRIMARY KEY, value INT, other INT)").unwrap();
    order(one, "INSERT INTO whole VALUES (1, 0, 0), (2, 0, 0)").unwrap();
    let (mut schema, mut ops) = counters();
    schema.tables[0].name = "whole".to_owned();
    // Each number of keys is a statement of its own.
    let read = ops[2].clone();
    ops.extend(std::iter::repeat_n(read, 10));
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let schema = schema.into();
    let is_over = AtomicBool::new(false);
    let committed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // What is given up here is what the test wants.
                let _ = order(other, "UPDATE whole SET other = other + 1 WHERE id = 1");
            }
        });
        let mut committed = 0;
        let keys = vec![Value::Int(2); 128];
        for _ in 0..3 {
            let mut session = one.session(&schema, &options).unwrap();
            for keys in (1..=keys.len()).map(|count| &keys[..count]) {
                committed += i64::from(counted_both(&mut *session, keys));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        committed
    });
    let mut session = one.session(&schema, &options).unwrap();
    let mut value = |key: i64| {
        let mut out = Rows::default();
        session.run(OpId(2), &[Value::Int(key)], &mut out).unwrap();
        out.get(0, 0).int()
    };
    assert!(committed > 0, "some transactions end well");
    assert_eq!((value(1), value(2)), (committed, committed), "both rows of all transactions");
}

/// Whether a transaction was committed that counts both rows, with ten reads between.
fn counted_both(session: &mut dyn iostrata_database::target::Session, keys: &[Value<'_>]) -> bool {
    let mut out = Rows::default();
    session.begin().unwrap();
    let mut run = |op: usize, args: &[Value<'_>]| session.run(OpId(op), args, &mut out).map(drop);
    let counted = run(0, &[Value::Int(1)])
        .and_then(|()| (3..13).try_for_each(|op| run(op, keys)))
        .and_then(|()| run(1, &[Value::Int(2)]));
    let done = counted.and_then(|()| session.commit().map(drop));
    let trouble = done.as_ref().err().map(|error| error.trouble);
    assert!(matches!(trouble, None | Some(Trouble::Retry)), "{done:?}");
    done.is_ok()
}

/// What a node by itself holds against TPC-C's conditions; every acknowledged order is there and
/// none that was not begun.
fn violations_on(node: &PrivateServer, terminals: &Terminals<'_>) -> Vec<String> {
    // What the other node committed may still be on its way; reads wait for it.
    MySqlServers::default().set_variable(&node.address(), "wsrep_sync_wait", "1").unwrap();
    violations(&ServerTarget::open(alone(node), None).unwrap(), terminals)
}
