//! `watch` and `tune` on a replica that follows a real source, and on a Galera node that another
//! one holds back.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use iostrata_change::{Session, StateDir, System};
use iostrata_server::private::{ClusterPlan, PrivateCluster, ServerProgram, galera_provider};
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, document, number, stderr, stdout, wait_until};
use crate::proxy::Proxy;
use crate::server::{Private, hold_at, programs};
use crate::under_load::{end, load_at};

/// The samples of a `watch` that goes on.
struct Samples {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Samples {
    fn of(bench: &Bench, target: &str) -> Self {
        let line = format!("watch {target} --interval 250ms --json-lines");
        let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads on until a sample is like this, for two minutes at most.
    fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for line in self.lines.by_ref().take(480) {
            last = serde_json::from_str(&line.unwrap()).unwrap();
            if is_so(&last) {
                return last;
            }
        }
        panic!("no sample in which {what}; the last one: {last}");
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn a_replica_tells_how_far_it_is_behind_and_is_not_tuned_unasked() {
    for program in programs() {
        let found = ServerProgram::find(&program).unwrap();
        let is_mariadb = found.version.is_mariadb;
        let options = |id: &'static str| {
            let usual = ["--innodb-buffer-pool-size=64M", "--log-bin=b", "--sync-binlog=0", id];
            let gtids: &[&str] = match is_mariadb {
                true => &[],
                false => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
            };
            [&usual[..], gtids].concat()
        };
        let of = |id| Private::of(found.clone(), tempfile::tempdir().unwrap(), &options(id), &[]);
        let (source, replica) = (of("--server-id=7"), of("--server-id=8"));
        let proxy = Proxy::before(&[&source]);
        let port = proxy.target.rsplit(':').next().unwrap().trim_end_matches('/');
        let bench = Bench::new();
        // Replication starts with an empty source and replica.
        let follow = match is_mariadb {
            true => [
                format!(
                    "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, \
                     MASTER_USER = 'root', MASTER_USE_GTID = slave_pos"
                ),
                "START SLAVE".to_owned(),
            ],
            false => [
                format!(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = \
                     {port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1"
                ),
                "START REPLICA".to_owned(),
            ],
        };
        let target = replica.bare_target("root", "mysql");
        let lag = |sample: &Value| sample["replica_lag_s"].as_f64();
        let mut samples = Samples::of(&bench, &target);
        // It was sampled before it became one.
        samples.until("it is no replica yet", |one| lag(one).is_none());
        replica.hold_in("mysql", &follow.each_ref().map(String::as_str), || {});
        let load = load_at(&bench, &source.target("root", "oltp"), 2_000, 100);

        let applies = |sample: &Value| {
            sample["replica_transactions_per_s"].as_f64().is_some_and(|rate| rate > 20.0)
        };
        samples.until("it applies and is not behind", |one| applies(one) && lag(one) == Some(0.0));
        // A lock of another session on the table holds up what is applied.
        replica.hold_in("oltp", &["LOCK TABLES sbtest1 READ"], || {
            let behind =
                samples.until("it is two seconds behind", |one| lag(one).is_some_and(|s| s >= 2.0));
            assert!(!applies(&behind), "{program}: {behind}");
        });
        samples.until("it has caught up", |one| applies(one) && lag(one) == Some(0.0));
        let of_source = bench.line(&format!("watch {} --once --json", source.target("root", "")));
        let of_source = document(&of_source, "watch-sample");
        assert!(of_source["replica_lag_s"].is_null(), "{program}: {of_source}");
        assert!(of_source["replica_transactions_per_s"].is_null(), "{program}: {of_source}");

        let page = bench.line(&format!("watch {target} --summary --time 1s --interval 200ms"));
        assert!(stdout(&page).contains("it replicates from"), "{program}: {}", stdout(&page));
        let tuned = bench.line(&format!("tune {target} --time 1"));
        assert_eq!(tuned.status.code(), Some(2), "{program}: {}", stderr(&tuned));
        assert!(stderr(&tuned).contains("it replicates from"), "{program}: {}", stderr(&tuned));
        let dry = bench.line(&format!("tune {target} --time 1 --dry-run"));
        let said = stdout(&dry) + &stderr(&dry);
        assert!(said.contains("In the way of tuning it: "), "{program}: {said}");
        assert!(said.contains("it replicates from"), "{program}: {said}");

        let stop = if is_mariadb { "STOP SLAVE" } else { "STOP REPLICA" };
        replica.hold_in("mysql", &[stop], || {});
        samples.until("replication does not run", |one| lag(one).is_none());
        drop(samples);
        end(load, Signal::TERM);
        replica.end();
        source.end();
    }
}

/// The other node applies nothing more while a table is locked there, and makes this one pause.
#[test]
fn flow_control_of_a_galera_cluster_is_told_and_named() {
    let Ok(program) = ServerProgram::find("mariadbd") else {
        eprintln!("skipped: mariadbd is not installed");
        return;
    };
    if galera_provider().is_none() {
        eprintln!("skipped: /usr/lib/galera/libgalera_smm.so is not installed");
        return;
    }
    // Short, because sockets are in it.
    let dir = tempfile::TempDir::with_prefix("io-").unwrap();
    let state = StateDir::at(dir.path().join("state"));
    let mut session = Session::begin(&state, System::new()).unwrap();
    let options =
        ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2"].map(str::to_owned);
    let plan =
        ClusterPlan { program, dir: dir.path().join("c"), nodes: 2, options: options.into() };
    let cluster = PrivateCluster::start(&mut session, &plan).unwrap();
    let at = |node: usize, database: &str| {
        cluster.nodes()[node].address().replacen("/?", &format!("/{database}?"), 1)
    };
    let bench = Bench::new();
    let sample = |node: usize| {
        let line = format!("watch {} --interval 200ms --once --json", at(node, "mysql"));
        document(&bench.line(&line), "watch-sample")
    };
    let page = |node: usize| {
        let line = format!("watch {} --summary --time 200ms --interval 100ms", at(node, "mysql"));
        stdout(&bench.line(&line))
    };
    wait_until("both have joined", 200, || {
        (0..2).all(|node| page(node).contains("a Galera node of 2, Synced"))
    });
    assert_eq!(number(&sample(0), "/flow_control_paused_pct"), 0.0);
    hold_at(&at(0, "mysql"), &["CREATE DATABASE oltp"], || {});
    let load = load_at(&bench, &at(0, "oltp"), 2_000, 300);
    let mut samples = Samples::of(&bench, &at(0, "mysql"));
    let is_usual = |one: &Value| {
        one["t_s"].as_f64() > Some(8.0) && one["tps"].as_f64().is_some_and(|tps| tps > 100.0)
    };
    samples.until("the load is usual", is_usual);
    hold_at(&at(1, "oltp"), &["LOCK TABLES sbtest1 WRITE"], || {
        let stalled =
            samples.until("flow control is named", |one| one["stall_cause"] == "flow_control");
        assert!(number(&stalled, "/flow_control_paused_pct") > 50.0, "{stalled}");
    });
    samples.until("it goes on", is_usual);
    drop(samples);
    end(load, Signal::TERM);
    cluster.remove(&mut session).unwrap();
}
