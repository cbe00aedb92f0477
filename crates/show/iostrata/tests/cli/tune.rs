//! `tune` on a private MariaDB: one that is started again, one without work, those that are
//! refused.

use std::thread::sleep;
use std::time::Duration;

use iostrata_server::private::ServerProgram;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, stderr, stdout, usual_or_soak, wait_until};
use crate::server::{Private, programs};
use crate::under_load::{end, load, pressed, pressed_of, settings, start_told, wait_until_tuned};

#[test]
fn another_server_has_its_own_settings_and_is_tuned_anew() {
    let bench = Bench::new();
    let Some(mut private) = pressed(&[]) else { return };
    let load = load(&bench, &private);
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let said = || std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    let tune = start_told(&bench, &format!("tune {target} --json --out killed"), "said");
    wait_until_tuned(&private, &before);
    private.kill();
    // A server reports its start in whole seconds.
    sleep(Duration::from_millis(usual_or_soak(1_100, 4_000)));
    private.start_again();
    wait_until("it is said that it is another one", 100, || said().contains("started again"));
    let samples = || {
        let events = std::fs::read_to_string(bench.path("killed/events.jsonl"));
        events.unwrap_or_default().lines().count()
    };
    let before_anew = samples();
    wait_until("the other server is sampled", 100, || samples() > before_anew + 3);
    sleep(Duration::from_secs(usual_or_soak(0, 4)));
    let ended = end(tune, Signal::TERM);
    let said = said();
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("waiting for the server"), "{said}");
    assert_eq!(settings(&private), before, "{said}");
    let tuned: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(!tuned["settings"].as_array().unwrap().is_empty());
    // Nothing is left to be put back.
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}", stderr(&restored));
    end(load, Signal::TERM);
}

#[test]
fn what_somebody_sets_while_nothing_is_tuned_is_what_comes_back() {
    let bench = Bench::new();
    let Some(private) = pressed(&[]) else { return };
    let target = private.target("root", "");
    let said = || std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    let tune = start_told(&bench, &format!("tune {target} --json --out RUN"), "said");
    wait_until("it has begun", 50, || said().contains("Every setting goes back"));
    private.hold_in("", &["SET GLOBAL innodb_io_capacity = 110"], || {});
    let before = settings(&private);
    let load = load(&bench, &private);
    let is_led = || {
        let now = settings(&private);
        let differs = |name: &str| now[name] != before[name];
        differs("innodb_io_capacity") && differs("innodb_adaptive_flushing")
    };
    wait_until("it is tuned, the capacity too", 100, is_led);
    end(tune, Signal::KILL);
    assert_eq!(said().matches("innodb_io_capacity is 110, was 100").count(), 1, "{}", said());
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
}

/// What becomes another's to write to while it is tuned: what is set, what ends it, and what is
/// printed about it.
#[test]
fn a_server_that_is_demoted_while_tuned_is_put_back() {
    let become_replica = |is_mariadb: bool| match is_mariadb {
        // Its source does not answer, which it goes on trying.
        true => ["CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1", "START SLAVE"],
        false => [
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1",
            "START REPLICA",
        ],
    };
    let demoted = |program: &str| {
        let program = ServerProgram::find(program).unwrap();
        let is_mariadb = program.version.is_mariadb;
        let private = pressed_of(program, &["--server-id=7"]);
        let bench = Bench::new();
        let load = load(&bench, &private);
        let before = settings(&private);
        let stop = if is_mariadb { "STOP SLAVE" } else { "STOP REPLICA" };
        for (run, demote, says, promote) in [
            ("read_only", &["SET GLOBAL read_only = 1"][..], "read_only is ON", None),
            ("replica", &become_replica(is_mariadb), "it replicates from", Some(stop)),
        ] {
            let said = || std::fs::read_to_string(bench.path(run)).unwrap_or_default();
            let line = format!("tune {} --json --out run-{run}", private.target("root", ""));
            let mut tune = start_told(&bench, &line, run);
            wait_until_tuned(&private, &before);
            private.hold_in("oltp", demote, || {});
            wait_until("tune ends", 100, || tune.has_ended());
            private.hold_in("oltp", &[promote.unwrap_or("SET GLOBAL read_only = 0")], || {});
            assert_eq!(settings(&private), before, "{}", said());
            assert_eq!(tune.wait().status.code(), Some(3), "{}", said());
            assert_eq!(said().matches(says).count(), 1, "{}", said());
        }
        end(load, Signal::TERM);
        private.end();
    };
    let programs = programs();
    std::thread::scope(|scope| {
        for program in &programs {
            scope.spawn(|| demoted(program));
        }
    });
}

#[test]
fn an_idle_server_is_left_alone() {
    let bench = Bench::new();
    let Some(private) = Private::start(&[]) else { return };
    let target = private.target("root", "");
    let idle = bench.line(&format!("tune {target} --time 3 --json --quiet --out idle"));
    assert!(idle.status.success(), "{}", stderr(&idle));
    let idle: Value = serde_json::from_slice(&idle.stdout).unwrap();
    assert_eq!(idle["settings"].as_array().unwrap().len(), 0);
}

#[test]
fn what_cannot_be_tuned_is_refused_with_the_reason() {
    let bench = Bench::new();
    std::fs::write(bench.path("odd.toml"), "[innodb_io_capacity]\nmin = 5\n").unwrap();
    let server = "mysql://root@127.0.0.1:1";
    for (line, says) in [
        ("tune engine:db".to_owned(), "controls its checkpoint age itself"),
        ("tune mysql://a@h1:1,h2:2".to_owned(), "one tune controls one server"),
        (format!("tune {server} --config odd.toml"), "innodb_io_capacity.min = 5: it takes 100 to"),
        (format!("tune {server} --config none.toml"), "none.toml"),
        (format!("tune {server} --set-point 99"), "use 10 to 95"),
        (format!("tune {server} --interval 10ms"), "--interval"),
        (format!("tune {server} --interval 100s"), "use 200ms to 10s"),
    ] {
        let output = bench.line(&line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(says), "{line}: {said}");
    }
    let Some(private) = Private::start(&["--read-only=ON"]) else { return };
    let output = bench.line(&format!("tune {} --time 1", private.target("root", "")));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("read_only is ON"), "{}", stderr(&output));
}
