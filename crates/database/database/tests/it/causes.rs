//! What blocks all sessions of a real server at once, one way each, and the cause that is named;
//! the same without harm, of which nothing is named.

use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use iostrata_database::target::Target;
use iostrata_database::watch::WatchStep;
use iostrata_plan::study::IoLimits;
use iostrata_run::{LockKind, LockWait, StallCause, StallSnapshot, StatementDigest};
use iostrata_server::ServerTarget;
use iostrata_server::private::ServerProgram;

use crate::stage::{Stage, Then, Worker};
use crate::stalls::{assert_named, stalls};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB";
pub const UPDATE: &str = "UPDATE t SET v = v + 1 WHERE id = ?";
pub const ROWS: u64 = 256;
pub const SESSIONS: usize = 6;
/// When it is planted, and for how long is watched at most, in seconds.
pub const AT_S: u64 = 7;
pub const WATCHED_S: u64 = 16;

/// Every installed program, named so that a failure shows which.
pub fn programs(test: &str) -> Vec<ServerProgram> {
    let more = std::env::var("IOSTRATA_TEST_PROGRAMS").unwrap_or_default();
    let mut paths = vec!["mariadbd"];
    paths.extend(more.split(':').filter(|path| !path.is_empty()));
    let mut found: Vec<ServerProgram> = Vec::new();
    for program in paths.into_iter().filter_map(|path| ServerProgram::find(path).ok()) {
        if found.iter().all(|one| one.version.to_string() != program.version.to_string()) {
            found.push(program);
        }
    }
    if found.is_empty() {
        eprintln!("skipped: {test}: mariadbd is not installed");
    }
    found
}

pub fn begin(program: ServerProgram, test: &str, options: &[&str]) -> Stage {
    let usual = [
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=2",
        // More than they make of it, so that it is the cause of no stall.
        "--loose-innodb-log-file-size=512M",
        "--loose-innodb-redo-log-capacity=512M",
    ];
    eprintln!("{test} on {}", program.version);
    let all: Vec<&str> = usual.iter().chain(options).copied().collect();
    let stage = Stage::begin_on(program, test, &all, IoLimits::default()).unwrap();
    let rows: Vec<String> = (1..=ROWS).map(|id| format!("({id}, 0)")).collect();
    stage.order(&[TABLE, &format!("INSERT INTO t VALUES {}", rows.join(", "))]);
    stage
}

/// A session that runs statements, stays until it is let go, and runs others then.
struct Holder {
    done: Sender<()>,
    thread: JoinHandle<()>,
}

impl Holder {
    fn begin(
        target: ServerTarget,
        first: &'static [&'static str],
        last: &'static [&'static str],
    ) -> Self {
        let ((done, until), (is_held, held)) = (channel(), channel());
        let thread = thread::spawn(move || {
            let all: Vec<&str> = first.iter().chain(last).copied().collect();
            let mut worker = Worker::open(&target, &all, true);
            (0..first.len()).for_each(|at| worker.run(at, &[]));
            is_held.send(()).unwrap();
            // The channel is closed, or a message came: both let it go.
            let _gone: Result<(), _> = until.recv();
            (first.len()..all.len()).for_each(|at| worker.run(at, &[]));
        });
        held.recv().unwrap();
        Self { done, thread }
    }

    fn end(self) {
        drop(self.done);
        self.thread.join().unwrap();
    }
}

/// Plants it after some seconds of an even load, and expects the cause.
fn named(
    mut stage: Stage,
    cause: StallCause,
    plant: impl FnOnce(&mut Stage) -> Vec<Holder> + 'static,
) -> (Stage, Vec<WatchStep>) {
    stage.load_evenly(SESSIONS, UPDATE, ROWS);
    let (send, holders) = channel();
    let then = Then::after(AT_S, move |stage| send.send(plant(stage)).unwrap());
    let all = stage.watch_for(Some(cause), WATCHED_S, Some(then));
    holders.try_iter().flatten().for_each(Holder::end);
    assert_named(&all, cause);
    (stage, all)
}

#[test]
fn a_global_read_lock_is_named() {
    let test = "a_global_read_lock_is_named";
    for program in programs(test) {
        let stage = begin(program, test, &[]);
        named(stage, StallCause::GlobalLock, |stage| {
            let lock = &["FLUSH TABLES WITH READ LOCK"];
            vec![Holder::begin(stage.target(), lock, &["UNLOCK TABLES"])]
        });
    }
}

#[test]
fn a_table_that_is_altered_behind_a_long_read_is_named() {
    let test = "a_table_that_is_altered_behind_a_long_read_is_named";
    for program in programs(test) {
        // performance_schema reports whose locks are waited for from MySQL 5.7 and MariaDB 10.5 on.
        let tells = program.version.is_mariadb || program.version.is_from(5, 7);
        let instrument = "--performance-schema-instrument=wait/lock/metadata/sql/mdl=ON";
        let stage = begin(program, test, &["--performance-schema=ON", instrument]);
        let (_stage, all) = named(stage, StallCause::MetadataLock, |stage| {
            let target = stage.target();
            let read = &["BEGIN", "SELECT COUNT(*) FROM t"];
            let reader = Holder::begin(stage.target(), read, &["COMMIT"]);
            // It waits for the reader, and all other sessions for it.
            let alter = thread::spawn(move || {
                Worker::open(&target, &["ALTER TABLE t ADD COLUMN w INT"], true).run(0, &[]);
            });
            let (done, _until) = channel();
            vec![reader, Holder { done, thread: alter }]
        });
        // A busy machine may stall it before, which has a snapshot of its own.
        let snapshots: Vec<_> = all.iter().filter_map(|one| one.snapshot.as_deref()).collect();
        let sentences = snapshots.iter().map(|one| one.sentences()).collect::<Vec<_>>();
        eprintln!("{sentences:#?}");
        // The reader blocks the ALTER, and all other sessions behind it.
        let blocks = |one: &&StallSnapshot| one.blockers.first().map(|one| one.blocks);
        let most = snapshots.iter().filter_map(blocks).max();
        assert!(!snapshots.is_empty() && (!tells || most >= Some(2)), "{snapshots:?}");
    }
}

/// A literal of a client, which nothing may keep.
const SECRET: &str = "987654321";
const SECRET_UPDATE: &str = "UPDATE t SET v = v + 987654321 - 987654321 WHERE id = ?";

#[test]
fn a_snapshot_says_who_blocks_whom_and_keeps_no_literal() {
    let test = "a_snapshot_says_who_blocks_whom_and_keeps_no_literal";
    for program in programs(test) {
        // MariaDB does not report running statements unless a consumer is switched on, nor does
        // MySQL 5.6.
        let tells = !program.version.is_mariadb && program.version.is_from(8, 0);
        let mut stage = begin(program, test, &["--performance-schema=ON"]);
        stage.load_evenly(SESSIONS, SECRET_UPDATE, ROWS);
        let (send, holders) = channel();
        let then = Then::after(AT_S, move |stage| {
            let hold = &["BEGIN", "UPDATE t SET v = 987654321"];
            send.send(Holder::begin(stage.target(), hold, &["ROLLBACK"])).unwrap();
        });
        let mut all = stage.watch_for(Some(StallCause::Lock), WATCHED_S, Some(then));
        holders.try_iter().for_each(Holder::end);
        // The statements are counted again at the end of the stall.
        all.extend(stage.watch(3, None));
        let found: Vec<&StallSnapshot> =
            all.iter().filter_map(|one| one.snapshot.as_deref()).collect();
        let first = found.first().unwrap();
        let kept = format!("{found:?}");
        assert!(!kept.contains(SECRET), "{kept}");
        let [blocker, ..] = &first.blockers[..] else { panic!("{first:?}") };
        assert!(blocker.blocks >= 2 && blocker.command.is_some(), "{first:?}");
        let of = |wait: &&LockWait| wait.blocking == blocker.connection;
        let wait = first.lock_waits.iter().find(of).unwrap();
        assert_eq!((wait.object.as_str(), wait.kind), ("shop.t", LockKind::Row));
        assert!(first.sessions.iter().any(|one| one.sessions >= 2), "{first:?}");
        assert!(first.monitor.iter().any(|line| line.starts_with("History list")), "{first:?}");
        let is_update = |one: &&StatementDigest| {
            one.text.as_ref().is_some_and(|text| text.contains("UPDATE `t` SET `v` ="))
        };
        let running = first.statements.iter().find(is_update).map(|one| one.running);
        eprintln!("{running:?} {:?} {:#?}", first.missing, first.sentences());
        assert!(!tells || running >= Some(2), "{first:?}");
    }
}

#[test]
fn clients_that_are_turned_away_are_named() {
    let test = "clients_that_are_turned_away_are_named";
    for program in programs(test) {
        let mut stage = begin(program, test, &[]);
        // Each transaction has a connection of its own.
        stage.connect_each_time(SESSIONS, UPDATE, ROWS);
        let (send, hogs) = channel();
        let plant = Then::after(AT_S, move |stage| {
            stage.order(&["SET GLOBAL max_connections = 20"]);
            let target = stage.target();
            let (mut hogs, mut opened) = (Vec::new(), Instant::now());
            // Those of the load come and go: until none has left a place for a second.
            while opened.elapsed() < Duration::from_secs(1) {
                match Worker::try_open(&target, &["SELECT 1"]) {
                    Ok(hog) => {
                        hogs.push(hog);
                        opened = Instant::now();
                    }
                    Err(_) => thread::sleep(Duration::from_millis(2)),
                }
            }
            assert!((10..=21).contains(&hogs.len()), "{}", hogs.len());
            send.send(hogs).unwrap();
        });
        let cause = StallCause::Connections;
        let all = stage.watch_for(Some(cause), WATCHED_S, Some(plant));
        drop(hogs.try_recv());
        assert_named(&all, cause);
    }
}

#[test]
fn commits_that_no_replica_acknowledges_are_named() {
    let test = "commits_that_no_replica_acknowledges_are_named";
    for program in programs(test) {
        let is_mariadb = program.version.is_mariadb;
        if !is_mariadb && !program.version.is_from(8, 0) {
            eprintln!("skipped: {test}: MySQL {} comes without its plugin", program.version);
            continue;
        }
        let stage = begin(program, test, &["--log-bin=b", "--sync-binlog=0"]);
        let (stage, _) = named(stage, StallCause::SemiSync, move |stage| {
            stage.order(if is_mariadb {
                &["SET GLOBAL rpl_semi_sync_master_enabled = ON"]
            } else {
                &[
                    "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
                    "SET GLOBAL rpl_semi_sync_source_enabled = ON",
                ]
            });
            Vec::new()
        });
        let word = if is_mariadb { "master" } else { "source" };
        stage.order(&[&format!("SET GLOBAL rpl_semi_sync_{word}_enabled = OFF")]);
    }
}

#[test]
fn what_holds_nobody_up_is_not_named() {
    let test = "what_holds_nobody_up_is_not_named";
    for program in programs(test) {
        let mut stage = begin(program, test, &["--log-bin=b", "--sync-binlog=0"]);
        stage.load_evenly(SESSIONS, UPDATE, ROWS);
        let plant = Then::after(AT_S, |stage| {
            let target = stage.target();
            // Sessions that only lie idle, a read lock for an instant, a table that is not used.
            let idle: Vec<Worker> =
                (0..40).map(|_| Worker::open(&target, &["SELECT 1"], true)).collect();
            stage.order(&["FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES"]);
            stage.order(&["CREATE TABLE s (id INT PRIMARY KEY) ENGINE=InnoDB"]);
            let reader =
                Holder::begin(stage.target(), &["BEGIN", "SELECT COUNT(*) FROM s"], &["COMMIT"]);
            let alter = thread::spawn(move || {
                Worker::open(&target, &["ALTER TABLE s ADD COLUMN w INT"], true).run(0, &[]);
            });
            thread::sleep(Duration::from_secs(1));
            reader.end();
            alter.join().unwrap();
            drop(idle);
        });
        let all = stage.watch(12, Some(plant));
        // Others may take the processors meanwhile.
        let causes: Vec<StallCause> = stalls(&all).iter().map(|stall| stall.cause).collect();
        let is_harmless =
            |cause: &StallCause| [StallCause::Unknown, StallCause::Processors].contains(cause);
        assert!(causes.iter().all(is_harmless), "{causes:?}");
    }
}

/// A member of a group of one, which its flow control lets commit three transactions per second
/// from some moment on.
#[test]
fn flow_control_of_a_replication_group_is_named() {
    let test = "flow_control_of_a_replication_group_is_named";
    for program in programs(test) {
        if program.version.is_mariadb || !program.version.is_from(9, 0) {
            eprintln!("skipped: {test}: {} does not report who is held back", program.version);
            continue;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let member = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        drop(listener);
        let stage = begin(
            program,
            test,
            &[
                "--log-bin=b",
                "--sync-binlog=0",
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--plugin-load-add=group_replication.so",
                "--loose-group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
                "--loose-group-replication-start-on-boot=OFF",
                &format!("--loose-group-replication-local-address={member}"),
                &format!("--loose-group-replication-group-seeds={member}"),
            ],
        );
        stage.order(&[
            "INSTALL COMPONENT 'file://component_group_replication_flow_control_stats'",
            "SET GLOBAL group_replication_bootstrap_group = ON",
            "START GROUP_REPLICATION",
            "SET GLOBAL group_replication_bootstrap_group = OFF",
        ]);
        let role = stage.target().role().unwrap();
        let member = role.member.unwrap_or_default();
        assert_eq!(member, "a member of a replication group, PRIMARY and ONLINE");
        assert_eq!(role.replica, None);
        let waits = stage.target().sampler().unwrap().unwrap().session_waits().unwrap();
        assert_eq!((waits.group_queue, waits.group_queue_limit), (0, 25_000), "at its defaults");
        let (stage, _) = named(stage, StallCause::FlowControl, |stage| {
            stage.order(&[
                "SET GLOBAL group_replication_flow_control_certifier_threshold = 0",
                "SET GLOBAL group_replication_flow_control_applier_threshold = 0",
                "SET GLOBAL group_replication_flow_control_max_quota = 3",
            ]);
            Vec::new()
        });
        // Those that wait would hold up its end.
        stage.order(&["SET GLOBAL group_replication_flow_control_mode = 'DISABLED'"]);
    }
}
