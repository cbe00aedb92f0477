//! What a recording reports, on a private MariaDB: advice that is tried in turns and put back, an
//! open transaction that is named, and a stall with who blocks whom.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{scope, sleep};
use std::time::Duration;

use iostrata_database::target::{
    Access, ColumnType, Op, OpId, Rows, Schema, Session, SessionOptions, Target,
};
use iostrata_diagnose::{Family, SERVER_SETTINGS};
use iostrata_server::private::ServerProgram;
use iostrata_server::{Credentials, Flavour, ServerAddress, ServerTarget};
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, document, number, stderr, stdout, usual_or_soak, wait_until};
use crate::server::{Private, programs};
use crate::under_load::{Running, end, load_at, settings, start};

/// A redo that goes round within seconds, and a page cleaner that is set to sleep.
const OPTIONS: [&str; 4] = [
    "--innodb-log-file-size=10M",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-max-dirty-pages-pct-lwm=0",
];

fn connected(private: &Private, database: &str) -> ServerTarget {
    let address: ServerAddress = private.target("root", database).parse().unwrap();
    let address = Credentials::default().complete(address).unwrap();
    ServerTarget::open(address, None).unwrap()
}

fn ids(document: &Value, list: &str, name: &str) -> Vec<String> {
    let all = document[list].as_array().unwrap().iter();
    all.map(|one| one[name].as_str().unwrap().to_owned()).collect()
}

/// A server whose load lets its cleaner sleep, and the line that tries what follows from that.
struct Asleep {
    private: Private,
    target: String,
    line: String,
    before: BTreeMap<String, String>,
    _load: Running,
}

impl Asleep {
    /// None where no server is installed, which it prints.
    fn start(bench: &Bench) -> Option<Self> {
        let private = Private::start(&OPTIONS)?;
        let target = private.target("root", "oltp");
        // A model of a few hundred transactions per second is run within a second.
        let load = load_at(bench, &target, 20_000, 400);
        // While the redo is young, its cleaner may sleep.
        let now = format!("watch {target} --once --json --quiet");
        wait_until("the redo has aged", 20, || {
            let sample = serde_json::from_slice::<Value>(&bench.line(&now).stdout);
            sample
                .is_ok_and(|one| one["checkpoint_age_pct"].as_f64().is_some_and(|pct| pct >= 30.0))
        });
        let time = usual_or_soak(4, 5);
        let before = settings(&private);
        let verify = "--verify --verify-window 2s --record RUN";
        let line = format!("watch {target} --interval 100ms --time {time} {verify}");
        Some(Self { private, target, line, before, _load: load })
    }

    /// Begins the trial and waits until it has set something. What was watched on a machine that
    /// others keep busy may advise nothing: that is watched again.
    fn begin(&self, bench: &Bench) -> Running {
        let mut tried = start(bench, &self.line);
        wait_until("something is set", 100, || {
            if tried.has_ended() {
                std::fs::remove_dir_all(bench.path("RUN")).unwrap();
                tried = start(bench, &self.line);
            }
            settings(&self.private) != self.before
        });
        tried
    }
}

#[test]
fn settings_that_advice_names_are_there_and_change_as_it_says() {
    for program in programs() {
        let program = ServerProgram::find(&program).unwrap();
        let private = Private::of(program, tempfile::tempdir().unwrap(), &[], &[]);
        let version = connected(&private, "").version().clone();
        let family = match version.flavour {
            Flavour::MariaDb => Family::MariaDb,
            _ => Family::MySql,
        };
        let at = version.numbers;
        let there = settings(&private);
        for setting in SERVER_SETTINGS {
            let name = setting.name;
            // What a newer one replaces goes on being shown.
            assert!(there.contains_key(name) || !setting.is_in(family, at), "{name} at {at:?}");
            if let Some(value) = there.get(name) {
                let quoted = if value.parse::<f64>().is_err() { "'" } else { "" };
                let set = format!("SET GLOBAL {name} = {quoted}{value}{quoted}");
                let is_set = catch_unwind(AssertUnwindSafe(|| private.hold_in("", &[&set], || {})));
                assert_eq!(is_set.is_ok(), setting.is_dynamic(family, at), "{set} at {at:?}");
            }
        }
    }
}

#[test]
fn advice_is_tried_in_turns_and_put_back_at_the_end() {
    let bench = Bench::new();
    let Some(asleep) = Asleep::start(&bench) else { return };
    let tried = bench.line(&format!("{} --json", asleep.line));
    assert_eq!(settings(&asleep.private), asleep.before);
    let text = stderr(&tried);
    assert!(text.contains("8 alternating windows of 2 s"), "{text}");
    let kept = document(&tried, "watch");
    assert!(ids(&kept, "findings", "id").contains(&"page_cleaner_sleeps".to_owned()), "{kept}");
    let found = kept["verifications"].as_array().unwrap();
    let names: Vec<&str> = found.iter().filter_map(|one| one["text"].as_str()).collect();
    assert!(names[0].contains("innodb_max_dirty_pages_pct_lwm = 0.001"), "{names:?}");
    assert_eq!(found.len(), 3, "{names:?}");
    assert_eq!(number(&found[0], "/effect_pct_n"), 4.0);
    assert!(number(&found[0], "/effect_pct_ci95/0") < number(&found[0], "/effect_pct"));
    assert!(number(&found[0], "/before") > 0.0 && number(&found[0], "/after") > 0.0);
    let shown = bench.line("report RUN");
    assert!(stdout(&shown).contains("Tried here, in turns"), "{}", stdout(&shown));

    // The advice has what it is expected to change, or why that is not known.
    let advice = kept["advice"].as_array().unwrap();
    let awake = advice.iter().find(|one| one["setting"] == "innodb_max_dirty_pages_pct_lwm");
    let expected = &awake.unwrap()["expected"];
    assert_eq!(expected["settings"]["innodb_max_dirty_pages_pct_lwm"], "0.001", "{expected}");
    let (text, fits) = (expected["text"].to_string(), &kept["expected_from"]["fits"]);
    match fits.as_bool() {
        Some(true) if !text.contains("Nothing is expected") => {
            let change = number(expected, "/tps/change_pct/value");
            assert!(number(expected, "/tps/change_pct/ci95/0") <= change, "{expected}");
        }
        _ => assert!(text.contains("Nothing is expected: "), "{expected}"),
    }
    assert!(stdout(&shown).contains("expected to change, by simulation"), "{}", stdout(&shown));
}

#[test]
fn a_trial_that_is_asked_to_end_puts_back() {
    let bench = Bench::new();
    let Some(asleep) = Asleep::start(&bench) else { return };
    let ended = end(asleep.begin(&bench), Signal::TERM);
    assert_eq!(ended.status.code(), Some(143), "{}", stderr(&ended));
    assert_eq!(settings(&asleep.private), asleep.before);
}

/// Ends the connection that holds the claim.
const CUT_CLAIM: &str = "EXECUTE IMMEDIATE CONCAT('KILL ', IS_USED_LOCK('iostrata_tune'))";

#[test]
fn a_trial_whose_claim_is_lost_sets_nothing_and_puts_back() {
    let bench = Bench::new();
    let Some(asleep) = Asleep::start(&bench) else { return };
    let report = || document(&bench.line("report RUN --json"), "watch");
    let forget = || std::fs::remove_dir_all(bench.path("RUN")).unwrap();
    let watched = std::iter::from_fn(|| {
        let mut tried = start(&bench, &asleep.line);
        wait_until("it records", 20, || bench.path("RUN/events.jsonl").exists());
        asleep.private.hold_in("oltp", &[CUT_CLAIM], || {});
        while !tried.has_ended() {
            assert_eq!(settings(&asleep.private), asleep.before, "another tuner may be at work");
            sleep(Duration::from_millis(50));
        }
        let ended = tried.wait();
        assert!(ended.status.success(), "{}", stderr(&ended));
        let document = report();
        forget();
        Some(document)
    });
    // On a machine that others keep busy it may have nothing to advise.
    let mut advising = watched.take(5).filter(|one| !one["advice"].as_array().unwrap().is_empty());
    let text = advising.next().expect("it advises something")["unavailable"].to_string();
    assert!(text.contains("innodb_max_dirty_pages_pct_lwm"), "{text}");
    // In the middle of it.
    let tried = asleep.begin(&bench);
    asleep.private.hold_in("oltp", &[CUT_CLAIM], || {});
    let ended = tried.wait();
    assert!(ended.status.success(), "{}", stderr(&ended));
    assert_eq!(settings(&asleep.private), asleep.before);
    let text = report()["unavailable"].to_string();
    assert!(text.contains("iostrata_tune"), "the question about the claim failed: {text}");
}

#[test]
fn what_a_killed_trial_has_set_is_put_back_by_restore() {
    let bench = Bench::new();
    let Some(asleep) = Asleep::start(&bench) else { return };
    end(asleep.begin(&bench), Signal::KILL);
    let left = settings(&asleep.private);
    assert_ne!(left, asleep.before, "a killed trial puts nothing back");
    let restored = bench.line(&format!("restore --target {}", asleep.target));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&asleep.private), asleep.before);
}

#[test]
fn what_cannot_be_tried_is_refused_before_it_is_recorded() {
    let bench = Bench::new();
    let server = "mysql://u@127.0.0.1:9/";
    for (line, code, says) in [
        (format!("watch {server} --verify"), 2, "add --record DIR and --time"),
        (format!("watch {server} --verify --record RUN"), 2, "add --record DIR and --time"),
        ("watch engine:db --verify --record RUN --time 5".to_owned(), 2, "settings of a server"),
        (format!("watch {server} --verify --record RUN --time 5"), 3, "nothing listens there"),
        (format!("watch {server} --verify-window 1s"), 2, "2s to 10m"),
    ] {
        let output = bench.line(&line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{line}: {}", stderr(&output));
    }
    let Some(private) = Private::start(&["--read-only=ON"]) else { return };
    let target = private.target("root", "");
    let output = bench.line(&format!("watch {target} --verify --record RUN --time 5"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("read_only is ON"), "{}", stderr(&output));
    assert!(!bench.path("RUN").exists());
}

/// A session with statements that give numbers or nothing.
fn session(private: &Private, statements: &[&str], autocommit: bool) -> Box<dyn Session> {
    let op = |sql: &&str| {
        let number = vec![ColumnType::Int { bytes: 8 }];
        let gives = if sql.starts_with("SELECT") { number } else { Vec::new() };
        let access = Access::Statement { sql: (*sql).to_owned(), gives };
        Op { name: "statement", table: 0, access }
    };
    let ops = statements.iter().map(op).collect();
    let options = SessionOptions { ops, autocommit, as_text: true, ..SessionOptions::default() };
    connected(private, "mysql").session(&Arc::new(Schema::default()), &options).unwrap()
}

#[test]
fn a_transaction_that_stays_open_while_history_grows_is_named() {
    let bench = Bench::new();
    let options = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"];
    let Some(private) = Private::start(&options) else { return };
    let [write_s, time] = usual_or_soak([8, 10], [12, 14]);
    let changes = format!(
        "BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; DECLARE until DATETIME DEFAULT SYSDATE() + \
         INTERVAL {write_s} SECOND; WHILE SYSDATE() < until DO UPDATE test_open SET v = v + 1 \
         WHERE id = 1 + i % 100; SET i = i + 1; IF i % 20 = 0 THEN DO SLEEP(0.005); END IF; \
         END WHILE; END"
    );
    let statements = [
        "CREATE TABLE test_open (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        "INSERT INTO test_open SELECT seq, 0 FROM seq_1_to_100",
        &changes,
    ];
    let mut writer = session(&private, &statements, true);
    let mut run = |op: usize| writer.run(OpId(op), &[], &mut Rows::default()).map(drop);
    run(0).unwrap();
    run(1).unwrap();
    let reads = ["SELECT COUNT(*) FROM test_open", "SELECT CONNECTION_ID()"];
    let mut open = session(&private, &reads, false);
    open.begin().unwrap();
    open.run(OpId(0), &[], &mut Rows::default()).unwrap();
    let mut rows = Rows::default();
    open.run(OpId(1), &[], &mut rows).unwrap();
    let id = format!("{:?}", rows.row(0).next().unwrap());
    let id = id.trim_matches(|char: char| !char.is_ascii_digit()).to_owned();
    let target = private.target("root", "");
    let recorded = scope(|scope| {
        scope.spawn(|| run(2).unwrap());
        let line = format!("watch {target} --interval 100ms --time {time} --record open --json");
        bench.line(&line)
    });
    let kept = document(&recorded, "watch");
    let findings = kept["findings"].as_array().unwrap();
    let held = findings.iter().find(|one| one["id"] == "purge_held_by_view");
    let held = held.unwrap_or_else(|| panic!("{findings:?}"));
    let text = held["text"].as_str().unwrap();
    assert!(text.contains(&format!("The transaction of connection {id}, open for")), "{text}");
    assert_eq!(held["evidence"]["oldest_transaction_id"].to_string(), id);
    assert!(ids(&kept, "advice", "setting").contains(&format!("KILL {id}")), "{kept}");
    // What is advised ends it.
    let mut killer = session(&private, &[&format!("KILL {id}")], true);
    killer.run(OpId(0), &[], &mut Rows::default()).unwrap();
    sleep(Duration::from_secs(1));
    let line = format!("watch {target} --interval 100ms --once --json");
    let after = document(&bench.line(&line), "watch-sample");
    assert_eq!(after["oldest_transaction_s"], 0.0, "{after}");
}

#[test]
fn settings_that_were_left_changed_are_named_unless_a_tuner_is_at_work() {
    for program in programs() {
        let found = ServerProgram::find(&program).unwrap();
        let tells = found.version.is_mariadb || found.version.is_from(8, 0);
        let options = ["--innodb-buffer-pool-size=64M", "--innodb-io-capacity-max=900"];
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &[]);
        let bench = Bench::new();
        let line = format!("watch {} --interval 100ms --time 4", private.target("root", ""));
        let left = |run: &str| {
            let kept = document(&bench.line(&format!("{line} --record {run} --json")), "watch");
            let findings = kept["findings"].as_array().unwrap().iter();
            let mut left = findings.filter(|one| one["id"] == "settings_left_changed");
            left.next().map(|one| (one["evidence"]["settings"].clone(), one["text"].clone()))
        };
        assert_eq!(left("before"), None, "{program}: all as it was started");
        let set = "SET GLOBAL innodb_io_capacity = 321";
        // A variable outside the engine is no leftover.
        private.hold_in("mysql", &[set, "SET GLOBAL table_definition_cache = 500"], || {});
        let (names, text) = match left("after") {
            Some(found) => found,
            None => {
                assert!(!tells, "{program}: nothing is said");
                continue;
            }
        };
        assert_eq!(names, serde_json::json!(["innodb_io_capacity"]), "{program}: {text}");
        assert!(text.as_str().unwrap().contains("innodb_io_capacity = 321"), "{program}: {text}");
        private.hold_in("mysql", &["DO GET_LOCK('iostrata_tune', 1)"], || {
            assert_eq!(left("tuned"), None, "{program}: a tuner holds the server");
        });
        private.end();
    }
}

#[test]
fn a_stall_is_kept_with_who_blocks_whom_and_its_command_runs() {
    let options = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2"];
    let Some(private) = Private::start(&options) else { return };
    let bench = Bench::new();
    let target = private.target("root", "shop");
    let on = format!("--target {target} --tables 1 --table-size 1000");
    let prepared = bench.line(&format!("oltp update_index prepare {on}"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let child = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let rate = "--rate 400 --max-queue 100 --on-overload drop";
    let line = format!("oltp update_index run {on} --threads 4 --time 18 {rate} --json");
    let load = child(&line.split_whitespace().collect::<Vec<_>>());
    let command = "echo $IOSTRATA_TARGET >> $IOSTRATA_RECORDING/../hook; exit 3";
    let line = format!("watch {target} --interval 250ms --time 16 --lines --record RUN");
    let words: Vec<&str> = line.split_whitespace().chain(["--on-stall", command]).collect();
    let watch = child(&words);
    sleep(Duration::from_secs(9));
    private.hold_in("shop", &["UPDATE sbtest1 SET k = k + 1"], || sleep(Duration::from_secs(4)));
    let watched = watch.wait_with_output().unwrap();
    let _ended = load.wait_with_output().unwrap();
    assert!(watched.status.success(), "{}", stderr(&watched));
    let said = " sessions by row locks of shop.sbtest1";
    assert!(stdout(&watched).contains(said), "{}", stdout(&watched));
    let kept = document(&bench.line("report RUN --json"), "watch");
    let snapshots = kept["snapshots"].as_array().unwrap();
    let blocks = |one: &Value| one.pointer("/blockers/0/blocks").and_then(Value::as_u64);
    assert!(snapshots.iter().filter_map(blocks).any(|count| count >= 2), "{snapshots:?}");
    // A busy machine may have stalled besides.
    let ran = kept["on_stall"].as_array().unwrap().iter();
    let ran: Vec<&Value> = ran.filter(|one| !one["took_s"].is_null()).collect();
    assert!(ran.iter().all(|one| one["ended"] == "exit status: 3"), "{ran:?}");
    assert!(stderr(&watched).contains("--on-stall at"), "{}", stderr(&watched));
    let hook = std::fs::read_to_string(bench.path("hook")).unwrap();
    assert_eq!((hook.lines().count(), ran.is_empty()), (ran.len(), false), "{hook}");
    private.end();
}
