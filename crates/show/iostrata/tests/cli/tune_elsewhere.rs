//! `tune`, `watch` and `restore` where the address leads to more than one server: behind a
//! failover, a balancer, a proxy that answers itself.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, beside, stderr, stdout, wait_until};
use crate::proxy::Proxy;
use crate::server::Private;
use crate::under_load::{end, load, pressed, settings, start, start_told, wait_until_tuned};

/// Two servers, the first under load in the database `oltp`.
fn two() -> Option<(Private, Private)> {
    Some((pressed(&[])?, pressed(&[])?))
}

#[test]
fn a_failover_leaves_the_journal_of_the_server_that_was_tuned() {
    let bench = Bench::new();
    let Some((a, b)) = two() else { return };
    let proxy = Proxy::before(&[&a]);
    let load = load(&bench, &a);
    let (before, b_before) = (settings(&a), settings(&b));
    let said = || std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    let mut tune = start_told(&bench, &format!("tune {} --json --out RUN", proxy.target), "said");
    wait_until_tuned(&a, &before);
    proxy.switch(&b);
    wait_until("it ends or goes on", 100, || {
        tune.has_ended() || said().contains("from the beginning")
    });
    let ended = if tune.has_ended() { tune.wait() } else { end(tune, Signal::TERM) };
    let said = said();
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(!said.contains("same server answers"), "{said}");
    assert!(!said.contains("was started again"), "{said}");
    assert!(said.contains("another server answers"), "{said}");
    let capacity = format!("SET GLOBAL innodb_io_capacity = {};", before["innodb_io_capacity"]);
    assert!(said.contains(&capacity), "{said}");
    assert_eq!(settings(&b), b_before, "{said}");
    assert_ne!(settings(&a), before, "{said}");
    assert!(!bench.journal().is_empty(), "{said}");
    // The other server has nothing to be put back, and the output names whose settings are looked
    // for.
    let other = bench.line(&format!("restore --target {}", b.target("root", "")));
    let told = stdout(&other) + &stderr(&other);
    assert!(told.contains("Nothing of") && told.contains("settings of another server"), "{told}");
    assert!(!bench.journal().is_empty(), "{told}");
    let restored = bench.line(&format!("restore --target {}", a.target("root", "")));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&a), before);
    assert!(bench.journal().is_empty());
    end(load, Signal::TERM);
}

#[test]
fn restore_does_not_take_another_server_for_a_restart() {
    let bench = Bench::new();
    let Some((a, b)) = two() else { return };
    let proxy = Proxy::before(&[&a]);
    let load = load(&bench, &a);
    let (before, b_before) = (settings(&a), settings(&b));
    let tune = start(&bench, &format!("tune {} --quiet --out RUN", proxy.target));
    wait_until_tuned(&a, &before);
    end(tune, Signal::KILL);
    proxy.switch(&b);
    for line in ["restore --json".to_owned(), format!("restore --json --target {}", proxy.target)] {
        let output = bench.line(&line);
        let said = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{line}: {said}");
        let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let journal = &document["journals"][0];
        assert_eq!(journal["state"], "unsettled", "{line}: {said}");
        let thing = &journal["things"][0];
        let why = thing["outcome"]["failed"].as_str().unwrap();
        assert!(why.contains("another server answers"), "{line}: {said}");
        assert!(!thing["by_hand"].as_array().unwrap().is_empty(), "{line}: {said}");
    }
    assert_ne!(settings(&a), before);
    assert_eq!(settings(&b), b_before);
    proxy.switch(&a);
    let restored = bench.line("restore");
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&a), before);
    end(load, Signal::TERM);
}

/// The settings without the words of what was switched last, on or off.
fn own(private: &Private) -> BTreeMap<String, String> {
    let all = settings(private).into_iter();
    all.filter(|(name, _)| !name.starts_with("innodb_monitor_")).collect()
}

/// What sets settings, at this address.
fn setting(target: &str) -> [String; 3] {
    [
        format!("tune {target} --time 3 --out TUNED"),
        format!("watch {target} --time 1 --verify --verify-window 2s --record TRIED"),
        format!("watch {target} --time 1 --enable-counters --lines"),
    ]
}

#[test]
fn nothing_is_set_behind_a_balancer() {
    let bench = Bench::new();
    let Some((a, b)) = two() else { return };
    let (before, b_before) = (own(&a), own(&b));
    // Each of its first connections in turn is the first that leads to the other server.
    for others in 1..5 {
        for line in setting("TARGET") {
            let mut servers = vec![&a; others];
            servers.push(&b);
            let proxy = Proxy::before(&servers);
            let line = line.replace("TARGET", &proxy.target);
            let output = bench.line(&line);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{} servers, {line}: {said}", servers.len());
            assert!(said.contains("more than one server answers"), "{line}: {said}");
        }
    }
    assert_eq!((own(&a), own(&b)), (before, b_before));
    assert!(bench.journal().is_empty());
}

#[test]
fn nothing_is_set_through_a_proxy_that_answers_itself() {
    let bench = Bench::new();
    let Some(a) = Private::start(&[]) else { return };
    let before = settings(&a);
    let proxy = Proxy::renumbering(&a);
    for line in setting(&proxy.target) {
        let output = bench.line(&line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("a proxy answers"), "{line}: {said}");
    }
    assert_eq!(settings(&a), before);
    // To be watched it may be.
    let watched = bench.line(&format!("watch {} --once", proxy.target));
    assert!(watched.status.success(), "{}", stderr(&watched));
}

/// HAProxy, which is ended with its value.
struct HaProxy(Child);

impl Drop for HaProxy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn haproxy_that_balances_is_refused() {
    if Command::new("haproxy").arg("-v").output().is_err() {
        return eprintln!("skipped: haproxy is not installed; a balancer of the tests stands in");
    }
    let bench = Bench::new();
    let Some((a, b)) = two() else { return };
    let place = |server: &Private| {
        let target = server.target("root", "");
        target.split("socket=").nth(1).unwrap().split('&').next().unwrap().to_owned()
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
         listen db\n bind 127.0.0.1:{port}\n balance roundrobin\n server a unix@{}\n \
         server b unix@{}\n",
        place(&a),
        place(&b)
    );
    std::fs::write(bench.path("haproxy.cfg"), config).unwrap();
    let mut command = beside("haproxy");
    command.arg("-db").arg("-f").arg(bench.path("haproxy.cfg"));
    let _haproxy = HaProxy(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("haproxy listens", 20, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let (before, b_before) = (own(&a), own(&b));
    for line in setting(&format!("mysql://root@127.0.0.1:{port}/")) {
        let output = bench.line(&line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("more than one server answers"), "{line}: {said}");
    }
    assert_eq!((own(&a), own(&b)), (before, b_before));
}
