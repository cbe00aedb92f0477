//! The lease of `tune`: a server whose lease is not renewed restores its own settings.

use iostrata_change::Servers;
use iostrata_server::private::ServerProgram;
use iostrata_server::{Credentials, MySqlServers, ServerAddress, ServerTarget};
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, stderr, stdout, wait_until};
use crate::server::{Private, programs};
use crate::under_load::{
    end, load, pressed, pressed_of, settings, start, start_told, wait_until_tuned,
};

const SCHEDULER: &str = "--event-scheduler=ON";

/// What the event of a schema does; nothing where there is none.
fn event(private: &Private, schema: &str) -> Option<String> {
    let name = format!("server_event.{schema}.iostrata_tune");
    let address = private.target("root", "");
    let (_, mut values) = MySqlServers::default().look(&address, &[&name]).unwrap();
    values.remove(&name).filter(|value| value != "0")
}

fn has_schema(private: &Private, schema: &str) -> bool {
    let address: ServerAddress = private.bare_target("root", schema).parse().unwrap();
    ServerTarget::open(Credentials::default().complete(address).unwrap(), None).is_ok()
}

#[test]
fn a_server_whose_tuner_was_killed_puts_itself_back() {
    for program in programs() {
        let bench = Bench::new();
        let found = ServerProgram::find(&program).unwrap();
        let private = pressed_of(found, &[SCHEDULER]);
        let before = settings(&private);
        let load = load(&bench, &private);
        std::fs::write(bench.path("short.toml"), "lease_s = 6\n").unwrap();
        let target = private.target("root", "oltp");
        let line = format!("tune {target} --config short.toml --quiet --out RUN");
        let tune = start(&bench, &line);
        wait_until_tuned(&private, &before);
        let does = event(&private, "iostrata_lease").unwrap();
        assert!(does.contains("SET GLOBAL innodb_io_capacity = 100;"), "{program}: {does}");
        end(tune, Signal::KILL);
        assert_ne!(settings(&private), before, "{program}: it is tuned when its tuner dies");
        wait_until("the server has put itself back", 100, || settings(&private) == before);
        wait_until("the event is gone", 20, || event(&private, "iostrata_lease").is_none());
        wait_until("and its schema", 20, || !has_schema(&private, "iostrata_lease"));
        let restored = bench.line(&format!("restore --json --target {target}"));
        let said = stdout(&restored) + &stderr(&restored);
        assert_eq!(restored.status.code(), Some(0), "{program}: {said}");
        let restored: Value = serde_json::from_slice(&restored.stdout).unwrap();
        assert_eq!(restored["journals"][0]["state"], "settled", "{program}: {said}");
        assert!(restored["journals"][0]["left"].as_array().unwrap().is_empty(), "{said}");
        assert!(bench.journal().is_empty(), "{program}");
        assert_eq!(settings(&private), before, "{program}");
        end(load, Signal::TERM);
        private.end();
    }
}

#[test]
fn a_tuner_that_was_held_up_begins_anew_and_drops_its_event_in_the_end() {
    let bench = Bench::new();
    let Some(private) = pressed(&[SCHEDULER]) else { return };
    let load = load(&bench, &private);
    private.hold_in("", &["CREATE DATABASE dba"], || {});
    let before = settings(&private);
    std::fs::write(bench.path("short.toml"), "lease_s = 5\nlease_schema = \"dba\"\n").unwrap();
    let said = || std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    let target = private.target("root", "");
    let line = format!("tune {target} --config short.toml --json --out RUN");
    let tune = start_told(&bench, &line, "said");
    wait_until_tuned(&private, &before);
    assert!(event(&private, "dba").is_some(), "{}", said());
    // It goes on for longer than the lease.
    let lines = said().matches("checkpoint age").count();
    wait_until("it goes on", 100, || said().matches("checkpoint age").count() > lines);
    assert!(event(&private, "dba").is_some(), "{}", said());
    tune.signal(Signal::STOP);
    wait_until("the server has put itself back", 100, || settings(&private) == before);
    wait_until("the event is gone", 20, || event(&private, "dba").is_none());
    tune.signal(Signal::CONT);
    wait_until("it begins anew", 100, || said().contains("from the beginning"));
    wait_until_tuned(&private, &before);
    let ended = end(tune, Signal::TERM);
    let said = said();
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("restored its settings, since tune was silent for 5 s"), "{said}");
    assert!(!said.contains("another client changed"), "{said}");
    assert_eq!(settings(&private), before, "{said}");
    assert_eq!(event(&private, "dba"), None, "{said}");
    assert!(has_schema(&private, "dba"), "it is not ours");
    assert!(!has_schema(&private, "iostrata_lease"), "{said}");
    end(load, Signal::TERM);
}

#[test]
fn what_a_dead_host_leaves_is_said_where_a_server_has_no_events() {
    let bench = Bench::new();
    let options = ["--innodb-buffer-pool-size=64M", "--event-scheduler=OFF"];
    let Some(private) = Private::start(&options) else { return };
    let output = bench.line(&format!("tune {} --time 1 --out RUN", private.target("root", "")));
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("No lease (event_scheduler is OFF): should this host die"), "{said}");
}

#[test]
fn a_lease_is_promised_to_those_only_who_may_make_its_event() {
    for program in programs() {
        let bench = Bench::new();
        let found = ServerProgram::find(&program).unwrap();
        let is_old = found.version.is_mariadb || found.version.number.0 < 8;
        let right = if is_old { "SUPER" } else { "SYSTEM_VARIABLES_ADMIN" };
        let allowed = format!("GRANT {right}, PROCESS ON *.* TO tuner@localhost");
        let users = ["CREATE USER tuner@localhost", allowed.as_str()];
        let options = ["--innodb-buffer-pool-size=64M", SCHEDULER];
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &users);
        let says = |more: &str| {
            let line = format!("tune {} --time 1 {more}", private.target("tuner", ""));
            let output = bench.line(&line);
            assert!(output.status.success(), "{program}, {line}: {}", stderr(&output));
            stderr(&output)
        };
        let lacks =
            "No lease (this user may make no event in iostrata_lease; as an administrator: ";
        let mut grant = String::new();
        for more in ["--dry-run", "--out RUN"] {
            let said = says(more);
            let fix =
                said.split_once(lacks).map(|(_, rest)| rest.split_once("): should this host"));
            let (fix, _) = fix.flatten().unwrap_or_else(|| panic!("{program}, {more}: {said}"));
            assert!(fix.contains("GRANT EVENT, CREATE, DROP ON iostrata_lease.* TO"), "{said}");
            assert!(
                !said.contains("restores its settings if tune is silent"),
                "{program}, {more}: {said}"
            );
            grant = fix.to_owned();
        }
        private.hold_in("", &[grant.as_str()], || {});
        let said = says("--dry-run");
        assert!(said.contains("restores its settings if tune is silent"), "{program}: {said}");
        assert!(!said.contains("No lease"), "{program}: {said}");
        private.end();
    }
}
