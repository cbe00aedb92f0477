//! `tune` on one private MariaDB that is under load, which the tests here take turns at: what ends
//! a tune, what it may set, and what it does without its connection, its right or a free place.
//!
//! They share the server where they run in one process, on more than one thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, document, stderr, stdout, usual_or_soak, wait_until, wait_until_or};
use crate::server::Private;
use crate::under_load::{
    Running, end, load, pressed, settings, start, start_printing, start_told, wait_until_tuned,
};
use crate::watch::{checked_by_promtool, scraped};

/// A server under load.
struct Loaded {
    _load: Running,
    private: Private,
    _bench: Bench,
}

impl Loaded {
    /// None where no server is installed, which it prints.
    fn start() -> Option<Self> {
        let private = pressed(&[])?;
        let bench = Bench::new();
        Some(Self { _load: load(&bench, &private), private, _bench: bench })
    }
}

/// The server of all tests that run or wait for their turn.
fn shared() -> Option<Arc<Mutex<Loaded>>> {
    static SHARED: Mutex<Weak<Mutex<Loaded>>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = shared.upgrade() {
        return Some(loaded);
    }
    let loaded = Arc::new(Mutex::new(Loaded::start()?));
    *shared = Arc::downgrade(&loaded);
    Some(loaded)
}

/// The turn of a test. A test that failed may have left anything, so the next one gets a new
/// server.
fn turn(shared: &Mutex<Loaded>) -> MutexGuard<'_, Loaded> {
    shared.lock().unwrap_or_else(|poisoned| {
        let mut loaded = poisoned.into_inner();
        *loaded = Loaded::start().unwrap();
        shared.clear_poison();
        loaded
    })
}

/// The server in the turn of a test, which begins and ends with the same settings.
struct Tuned<'a> {
    private: &'a Private,
    bench: Bench,
    before: BTreeMap<String, String>,
}

impl Tuned<'_> {
    /// The output of `tune` so far, where it is kept in the file `said`.
    fn said(&self) -> String {
        std::fs::read_to_string(self.bench.path("said")).unwrap_or_default()
    }

    /// How many samples a run has kept so far.
    fn samples(&self, run: &str) -> usize {
        self.events(run, "sampled")
    }

    /// How many events of a kind a run has kept so far.
    fn events(&self, run: &str, kind: &str) -> usize {
        let events = self.bench.path(run).join("events.jsonl");
        let kept = std::fs::read_to_string(events).unwrap_or_default();
        kept.matches(&format!("\"event\":\"{kind}\"")).count()
    }

    /// What a stopped `tune` prints.
    fn ended(&self, tune: Running) -> Value {
        let ended = end(tune, Signal::TERM);
        assert_eq!(ended.status.code(), Some(143), "{}", stderr(&ended));
        serde_json::from_slice(&ended.stdout).unwrap()
    }

    fn wait_until_tuned(&self) {
        wait_until_tuned(self.private, &self.before);
    }
}

/// Runs a test on the server of all, in its turn.
fn tuned(test: impl FnOnce(&Tuned<'_>)) {
    let Some(shared) = shared() else { return };
    let private = &turn(&shared).private;
    let tuned = Tuned { private, bench: Bench::new(), before: settings(private) };
    test(&tuned);
    assert_eq!(settings(private), tuned.before, "{}", tuned.said());
}

/// Ends every connection but its own.
const CUT: &str = "BEGIN NOT ATOMIC FOR one IN (SELECT id FROM information_schema.processlist WHERE \
                   id <> CONNECTION_ID() AND user <> 'system user' AND db IS NULL) DO KILL one.id; \
                   END FOR; END";

/// The changes of a document.
fn changes(tuned: &Value) -> Vec<(&str, f64, f64, &str)> {
    let text = |one: &'_ Value, name: &str| one[name].as_str().unwrap().to_owned();
    let value = |one: &Value, name: &str| match text(one, name).as_str() {
        "ON" => 1.0,
        "OFF" => 0.0,
        number => number.parse().unwrap(),
    };
    let all = tuned["settings"].as_array().unwrap().iter();
    let change = |one: &'_ Value| (value(one, "from"), value(one, "to"));
    all.map(|one| {
        let (from, to) = change(one);
        (one["name"].as_str().unwrap(), from, to, one["why"].as_str().unwrap())
    })
    .collect()
}

#[test]
fn a_tuned_server_is_as_before_after_a_signal() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        let target = private.target("root", "oltp");
        let interval = usual_or_soak("200ms", "1s");
        let tune = start(bench, &format!("tune {target} --interval {interval} --json --out tuned"));
        on.wait_until_tuned();
        wait_until("some samples are kept", 20, || on.samples("tuned") >= 10);
        let second = bench.line(&format!("tune {target} --time 1"));
        assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
        let ended = end(tune, Signal::TERM);
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(143), "{said}");
        assert_eq!(settings(private), *before);
        assert!(said.contains("settings are back as they were before."), "{said}");
        // How a person puts it back: the bound first, so that nothing is clamped.
        let value = |name: &str| format!("SET GLOBAL {name} = {};", before[name]);
        let (low, high) = (value("innodb_io_capacity"), value("innodb_io_capacity_max"));
        assert!(said.contains(&format!("\n  {high}\n  {low}\n  {high}\n")), "{said}");
        assert!(said.contains("iostrata restore --target 'mysql://root@"), "{said}");
        let tuned: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let changes = tuned["settings"].as_array().unwrap();
        assert!(changes.iter().any(|one| one["name"] == "innodb_io_capacity"), "{changes:?}");
        assert!(changes.iter().all(|one| one["why"].as_str().is_some_and(|why| why.len() > 10)));
        assert!(tuned["pages_written_per_txn"].as_f64().unwrap() > 0.0);
        let report = bench.line("report tuned");
        assert!(report.status.success(), "{}", stderr(&report));
    });
}

#[test]
fn what_is_tuned_is_told_to_prometheus_and_at_the_end() {
    tuned(|on| {
        let Tuned { private, bench, .. } = on;
        let target = private.target("root", "oltp");
        let line = format!("tune {target} --metrics-addr 0 --json --out told");
        let tune = start_told(bench, &line, "said");
        on.wait_until_tuned();
        let body = || scraped(&on.said()).unwrap_or_default();
        let value = |name: &str| {
            let body = body();
            let line = body.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        };
        wait_until("it is told", 20, || value("iostrata_tune_active{") == Some(1.0));
        assert!(value("iostrata_tune_changes_total{").unwrap() >= 1.0);
        assert!(value("iostrata_checkpoint_age_ratio{").is_some());
        assert_eq!(value("iostrata_tune_lease{"), Some(0.0), "this server has no events");
        let set = "iostrata_tune_setting{target=\"mysql://";
        let flushing = format!("setting=\"{}\"", "innodb_adaptive_flushing");
        let is_set = |line: &str| line.starts_with(set) && line.contains(&flushing);
        assert!(body().lines().any(is_set), "{}", body());
        checked_by_promtool(&body());
        wait_until("some samples are kept", 60, || on.samples("told") >= 10);
        let document = on.ended(tune);
        let figures = document["tuned"].as_array().unwrap();
        let named = |name: &str| figures.iter().find(|one| one["name"] == name).unwrap();
        assert!(named("tps")["tuned"]["value"].as_f64().unwrap() > 0.0, "{figures:?}");
        assert!(named("tps")["tuned"]["n"].as_u64().unwrap() > 0, "{figures:?}");
        assert!(named("tps")["untuned"].is_null(), "it was taken over at once: {figures:?}");
        assert!(on.said().contains("Savings are not known"), "{}", on.said());
    });
}

#[test]
fn a_tuned_server_is_as_before_after_a_kill() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        let target = private.target("root", "oltp");
        let interval = usual_or_soak("200ms", "1s");
        let tune =
            start(bench, &format!("tune {target} --interval {interval} --quiet --out killed"));
        on.wait_until_tuned();
        wait_until("samples and a change are kept", 20, || {
            on.samples("killed") >= 3 && on.events("killed", "tuned") > 0
        });
        end(tune, Signal::KILL);
        assert_ne!(settings(private), *before, "what a killed one left is not put back by itself");
        let restored = bench.line(&format!("restore --target {target}"));
        assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
        assert_eq!(settings(private), *before);
        // What it did until then is kept.
        let killed = document(&bench.line("report killed --json"), "watch");
        assert!(killed["samples"].as_array().unwrap().len() >= 3, "{killed}");
        assert!(!killed["settings"].as_array().unwrap().is_empty(), "{killed}");
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        let target = private.target("root", "oltp");
        let line = format!("tune {target} --dry-run --out dry");
        let dry = start_printing(bench, &line, "printed");
        let printed = || std::fs::read_to_string(bench.path("printed")).unwrap();
        // Afterwards they would be put back.
        wait_until("a change is printed", 100, || {
            assert_eq!(settings(private), *before);
            printed().contains("not set: --dry-run")
        });
        let had = on.samples("dry");
        wait_until("it goes on", 100, || on.samples("dry") >= had + 3);
        assert_eq!(settings(private), *before);
        let dry = end(dry, Signal::TERM);
        assert_eq!(dry.status.code(), Some(143), "{}", stderr(&dry));
        assert!(!printed().contains(" tuned, "), "nothing was tuned: {}", printed());
    });
}

#[test]
fn the_same_server_is_put_back_and_tuned_from_the_beginning() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        // Without a database, which distinguishes its connections from those of the load.
        let line = format!("tune {} --json --out cut", private.target("root", ""));
        let tune = start_told(bench, &line, "said");
        on.wait_until_tuned();
        // Another session has the lock for a while, as a connection of ours has that the server
        // thinks alive. It gets it when the lock of the connection that was cut is gone.
        let lock = "DO GET_LOCK('iostrata_tune', 5)";
        private.hold_in("oltp", &[CUT, lock], || {
            wait_until("it asks again", 100, || on.said().contains("asking again"));
            assert_eq!(settings(private), *before, "it is put back first");
        });
        wait_until("it begins", 100, || on.said().contains("tuned from the beginning"));
        on.wait_until_tuned();
        let ended = end(tune, Signal::TERM);
        let said = on.said();
        assert_eq!(ended.status.code(), Some(143), "{said}");
        assert!(said.contains("waiting for the server"), "{said}");
        assert!(said.contains("at work on this server"), "{said}");
    });
}

#[test]
fn a_user_who_has_lost_the_right_is_not_asked_for_again() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        let right = "CREATE USER IF NOT EXISTS tuner@localhost; GRANT SUPER, PROCESS ON *.* TO \
                     tuner@localhost";
        let orders: Vec<&str> = right.split("; ").collect();
        private.hold_in("oltp", &orders, || {});
        let target = private.target("tuner", "");
        let tune = start(bench, &format!("tune {target} --json --out poor"));
        on.wait_until_tuned();
        private.hold_in("oltp", &["REVOKE SUPER ON *.* FROM tuner@localhost", CUT], || {});
        // Long before the two minutes are over for which it tries again.
        let ended = tune.wait();
        let said = stderr(&ended);
        assert!(matches!(ended.status.code(), Some(2 | 3)), "{:?}: {said}", ended.status);
        assert!(!said.contains("asking again"), "{said}");
        // What was set this user may not put back any more.
        let now = settings(private);
        let differs = |name: &&String| now[*name] != before[*name];
        let others: Vec<&String> = before.keys().filter(differs).collect();
        assert!(!others.is_empty(), "{said}");
        for name in others {
            let named = format!("{name} is {} and was {}", now[name], before[name]);
            assert!(said.contains(&named), "{named}: {said}");
        }
        assert!(said.contains("restore it as a user who may set it"), "{said}");
        let refused = bench.line(&format!("restore --target {target}"));
        let told = stdout(&refused) + &stderr(&refused);
        assert_eq!(refused.status.code(), Some(3), "{told}");
        assert!(told.contains("restore it as a user who may set it"), "{told}");
        assert!(!told.contains("choose a variable"), "{told}");
        let root = target.replacen("tuner@", "root@", 1);
        let restored = bench.line(&format!("restore --target {root}"));
        assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    });
}

#[test]
fn settings_that_are_safe_together_go_back_when_one_is_taken_over() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        let line = format!("tune {} --json --out taken", private.target("root", ""));
        let tune = start_told(bench, &line, "said");
        on.wait_until_tuned();
        // The server raises a limit that is below it to twice the capacity.
        let (capacity, raised, limit) = ("1777", "3554", "innodb_io_capacity_max");
        let set = format!("SET GLOBAL innodb_io_capacity = {capacity}");
        private.hold_in("oltp", &[&set], || {});
        let is_theirs = || {
            let mut theirs = before.clone();
            theirs.insert("innodb_io_capacity".to_owned(), capacity.to_owned());
            let found = settings(private);
            if found[limit] == raised {
                theirs.insert(limit.to_owned(), raised.to_owned());
            }
            found == theirs
        };
        wait_until_or("everything else is back", 100, is_theirs, || {
            let (now, said) = (settings(private), on.said());
            let others = now.iter().filter(|(name, value)| before[*name] != **value);
            format!("{:?}\n{said}", others.collect::<Vec<_>>())
        });
        // It stays so, though the load goes on.
        let lines = on.said().matches("checkpoint age").count();
        wait_until("two more looks", 100, || {
            on.said().matches("checkpoint age").count() > lines + 1
        });
        assert!(is_theirs(), "{}", on.said());
        on.ended(tune);
        let said = on.said();
        assert!(is_theirs(), "{said}");
        assert!((1..=2).contains(&said.matches("set by another client").count()), "{said}");
        let was = &before["innodb_io_capacity"];
        let named = format!("innodb_io_capacity is {capacity} and was {was}");
        assert!(said.contains("settings are back as they were before. Not back: "), "{said}");
        assert!(said.contains(&named), "{said}");
        let own = ["innodb_io_capacity", limit]
            .map(|name| format!("SET GLOBAL {name} = {}", before[name]));
        private.hold_in("oltp", &[&own[0], &own[1]], || {});
    });
}

#[test]
fn a_server_without_a_connection_left_is_tuned_on_and_put_back() {
    tuned(|on| {
        let Tuned { private, bench, .. } = on;
        let line = format!("tune {} --json --out full", private.target("root", "oltp"));
        let tune = start_told(bench, &line, "said");
        on.wait_until_tuned();
        private.hold_in("oltp", &["SET GLOBAL max_connections = 10"], || {});
        let mut sessions = private.use_up("oltp");
        // With a line of status, once in ten seconds, it checks the settings of the server.
        let (had, lines) = (on.samples("full"), on.said().matches("checkpoint age").count());
        wait_until("it goes on", 100, || on.samples("full") >= had + 3);
        wait_until("it has told", 100, || on.said().matches("checkpoint age").count() > lines);
        let had = on.samples("full");
        wait_until("it goes on afterwards", 100, || on.samples("full") > had);
        let ended = end(tune, Signal::TERM);
        sessions.pop();
        private.hold_in("oltp", &["SET GLOBAL max_connections = DEFAULT"], || {});
        let said = on.said();
        assert_eq!(ended.status.code(), Some(143), "{said}");
        assert!(!said.contains("waiting for the server"), "{said}");
    });
}

#[test]
fn auto_raise_raises_the_capacity_and_nothing_else() {
    tuned(|on| {
        let Tuned { private, bench, .. } = on;
        let target = private.target("root", "oltp");
        let line = format!("tune {target} --mode auto-raise --interval 200ms --json --quiet");
        let tune = start(bench, &format!("{line} --out raised"));
        on.wait_until_tuned();
        let had = on.samples("raised");
        wait_until("it goes on", 20, || on.samples("raised") >= had + usual_or_soak(10, 60));
        let tuned = on.ended(tune);
        let changes = changes(&tuned);
        assert!(!changes.is_empty(), "the redo was three quarters full");
        for (name, from, to, why) in changes {
            assert!(["innodb_io_capacity", "innodb_io_capacity_max"].contains(&name), "{name}");
            assert!(to > from && why.contains("three quarters full"), "{name} {from} {to} {why}");
            assert!(name != "innodb_io_capacity" || to == from + 100.0, "{from} {to}");
        }
    });
}

#[test]
fn writers_are_delayed_only_where_that_is_allowed() {
    tuned(|on| {
        let Tuned { private, bench, before } = on;
        let target = private.target("root", "oltp");
        let of_delay = |tuned: &Value| {
            let all = changes(tuned);
            all.iter().filter(|one| one.0.starts_with("innodb_max_purge_lag")).count()
        };
        // So little may be written that the age goes to its limit.
        let bounds = "[innodb_io_capacity]\nmax = 100\n[innodb_io_capacity_max]\nmax = 100\n";
        std::fs::write(bench.path("little.toml"), bounds).unwrap();
        let line = format!("tune {target} --config little.toml --json --quiet");
        let allowed = start(bench, &format!("{line} --allow-delay --out allowed"));
        let differs = |name: &str| settings(private)[name] != before[name];
        wait_until("both settings of the delay are set", 50, || {
            differs("innodb_max_purge_lag") && differs("innodb_max_purge_lag_delay")
        });
        let samples = on.samples("allowed") + usual_or_soak(1, 8);
        let allowed = on.ended(allowed);
        assert!(of_delay(&allowed) >= 2, "{}", allowed["settings"]);
        // As many samples as led to the delay, and more.
        let never = start(bench, &format!("{line} --out never"));
        wait_until("it goes on", 20, || on.samples("never") > samples);
        let never = on.ended(never);
        assert_eq!(of_delay(&never), 0, "{}", never["settings"]);
    });
}
