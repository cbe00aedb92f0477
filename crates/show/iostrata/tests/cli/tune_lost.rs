//! `tune` on a private MariaDB that it loses on the way: the same running server is put back first,
//! another one has its own settings.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, stderr};
use crate::tune::{end, loaded, settings, start};

/// Ends every connection but the one that asks.
const CUT: &str = "BEGIN NOT ATOMIC FOR one IN (SELECT id FROM information_schema.processlist WHERE \
                   id <> CONNECTION_ID() AND user <> 'system user' AND db IS NULL) DO KILL one.id; \
                   END FOR; END";

#[test]
fn the_same_server_is_put_back_and_tuned_from_the_beginning() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 24) else { return };
    let before = settings(&private);
    // Without a database, by which its connections are told from those of the load.
    let tune = start(&bench, &format!("tune {} --json --out cut", private.target("root", "")));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "the server is tuned");
    // Somebody has the lock for a while, as a connection of ours has that the server thinks alive.
    // It gets it when that of the connection that was cut is gone.
    let lock = "DO GET_LOCK('iostrata_tune', 5)";
    private.hold_in("oltp", &[CUT, lock], Duration::from_secs(5));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "it is tuned again");
    let ended = end(tune, Signal::TERM);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("waiting for the server"), "{said}");
    assert!(said.contains("at work on this server") && said.contains("asking again"), "{said}");
    assert!(said.contains("tuned from the beginning"), "{said}");
    assert_eq!(settings(&private), before, "{said}");
    end(load, Signal::TERM);
}

#[test]
fn a_user_who_has_lost_the_right_is_not_asked_for_again() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 20) else { return };
    let before = settings(&private);
    let right = "CREATE USER IF NOT EXISTS tuner@localhost; GRANT SUPER, PROCESS ON *.* TO \
                 tuner@localhost";
    let orders: Vec<&str> = right.split("; ").collect();
    private.hold_in("oltp", &orders, Duration::ZERO);
    let tune = start(&bench, &format!("tune {} --json --out poor", private.target("tuner", "")));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "the server is tuned");
    // What was set is put back by hand: this user may not any more.
    private.hold_in("oltp", &["REVOKE SUPER ON *.* FROM tuner@localhost", CUT], Duration::ZERO);
    std::thread::sleep(Duration::from_secs(5));
    // It has ended by itself, long before two minutes are over.
    let ended = end(tune, Signal::TERM);
    let said = stderr(&ended);
    assert!(matches!(ended.status.code(), Some(2 | 3)), "{:?}: {said}", ended.status);
    assert!(!said.contains("asking again"), "{said}");
    end(load, Signal::TERM);
}

#[test]
fn another_server_has_its_own_settings_and_is_tuned_anew() {
    let bench = Bench::new();
    let Some((mut private, load)) = loaded(&bench, 24) else { return };
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let tune = start(&bench, &format!("tune {target} --json --out killed"));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "the server is tuned");
    private.kill();
    // A start is told in whole seconds.
    std::thread::sleep(Duration::from_secs(4));
    private.start_again();
    std::thread::sleep(Duration::from_secs(4));
    let ended = end(tune, Signal::TERM);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("waiting for the server"), "{said}");
    assert!(said.contains("started again"), "it is said that it is another one: {said}");
    assert_eq!(settings(&private), before, "{said}");
    let tuned: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(!tuned["settings"].as_array().unwrap().is_empty());
    // Nothing is left to be put back.
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}", stderr(&restored));
    end(load, Signal::TERM);
}

#[test]
fn a_server_without_a_connection_left_is_tuned_on_and_put_back() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 20) else { return };
    let before = settings(&private);
    let tune = start(&bench, &format!("tune {} --json --out full", private.target("root", "oltp")));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "the server is tuned");
    private.hold_in("oltp", &["SET GLOBAL max_connections = 10"], Duration::ZERO);
    let sessions = private.use_up("oltp");
    std::thread::sleep(Duration::from_secs(5));
    let ended = end(tune, Signal::TERM);
    drop(sessions);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(!said.contains("waiting for the server"), "{said}");
    assert_eq!(settings(&private), before, "{said}");
    end(load, Signal::TERM);
}
