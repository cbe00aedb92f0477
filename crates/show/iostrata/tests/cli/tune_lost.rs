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
fn the_same_server_is_put_back_and_led_from_the_beginning() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 24) else { return };
    let before = settings(&private);
    // Without a database, by which its connections are told from those of the load.
    let tune = start(&bench, &format!("tune {} --json --out cut", private.target("root", "")));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "the server is led");
    private.hold_in("oltp", &[CUT], Duration::ZERO);
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "it is led again");
    let ended = end(tune, Signal::TERM);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("waiting for the server"), "{said}");
    assert!(said.contains("led from the beginning"), "{said}");
    assert_eq!(settings(&private), before, "{said}");
    end(load, Signal::TERM);
}

#[test]
fn another_server_has_its_own_settings_and_is_led_anew() {
    let bench = Bench::new();
    let Some((mut private, load)) = loaded(&bench, 24) else { return };
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let tune = start(&bench, &format!("tune {target} --json --out killed"));
    std::thread::sleep(Duration::from_secs(6));
    assert_ne!(settings(&private), before, "the server is led");
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
    let led: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(!led["settings"].as_array().unwrap().is_empty());
    // Nothing is left to be put back.
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}", stderr(&restored));
    end(load, Signal::TERM);
}
