//! `tune` killed at any moment on every server that there is, also where another one answers before
//! it is put back: after `restore` no setting of InnoDB differs.

use std::collections::BTreeMap;
use std::time::Duration;

use iostrata_server::private::ServerProgram;
use rustix::process::Signal;

use crate::harness::{Bench, is_soak, stderr, stdout, usual_or_soak};
use crate::proxy::Proxy;
use crate::server::{Private, programs};
use crate::under_load::{end, load, pressed_of, settings, start, wait_until_tuned};

/// Milliseconds to the kill of `tune` from its start; in the usual form a tenth of it from its
/// first change.
fn alive_ms(kill: u64) -> u64 {
    200 + (kill * 2_654_435_761 + 1) % 5_600
}

/// Runs `restore`; its exit code and its output.
fn restore(bench: &Bench, told: &str) -> (Option<i32>, String) {
    let output = bench.line("restore");
    (output.status.code(), format!("{told}: {}{}", stdout(&output), stderr(&output)))
}

fn assert_same(private: &Private, before: &BTreeMap<String, String>, said: &str) {
    let now = settings(private);
    let differs: Vec<_> = before.iter().filter(|(name, was)| now.get(*name) != Some(was)).collect();
    assert!(differs.is_empty(), "{differs:?}; {said}");
}

#[test]
fn restore_leaves_no_difference_wherever_tune_was_killed() {
    for program in programs() {
        let bench = Bench::new();
        let found = || ServerProgram::find(&program).unwrap();
        let private = pressed_of(found(), &[]);
        // What answers at the address after a failover, in the long form.
        let other = is_soak().then(|| Private::of(found(), tempfile::tempdir().unwrap(), &[], &[]));
        let proxy = Proxy::before(&[&private]);
        let before = settings(&private);
        let load = load(&bench, &private);
        let (mut changed, mut failed_over) = (0, 0);
        let kills = usual_or_soak(2, 20);
        for kill in 0..kills {
            let line = format!("tune {} --quiet --out RUN{kill}", proxy.target);
            let tune = start(&bench, &line);
            // Every other one is killed soon after it has set something.
            let is_late = kill % 2 == 1;
            if is_late {
                wait_until_tuned(&private, &before);
            }
            let share = if is_late && !is_soak() { 10 } else { 1 };
            std::thread::sleep(Duration::from_millis(alive_ms(kill) / share));
            end(tune, Signal::KILL);
            let left = settings(&private);
            changed += u32::from(left != before);
            let told = format!("{program}, kill {kill}");
            if let Some(other) = other.as_ref().filter(|_| kill % 3 == 1) {
                let theirs = settings(other);
                proxy.switch(other);
                failed_over += u32::from(left != before);
                let (code, said) = restore(&bench, &told);
                // Where nothing was to be set yet, there is nothing to be put back.
                assert!(code == Some(3) || left == before, "{said}");
                assert_eq!(code, Some(if bench.journal().is_empty() { 0 } else { 3 }), "{said}");
                assert_same(other, &theirs, &said);
                assert_same(&private, &left, &said);
                proxy.switch(&private);
            }
            let (code, said) = restore(&bench, &told);
            assert_eq!(code, Some(0), "{said}");
            assert_same(&private, &before, &said);
            assert_eq!(bench.journal(), "", "{said}");
        }
        eprintln!(
            "{program}: {kills} kills, {changed} with changed settings, {failed_over} of these \
             with another server before restore, 0 differ"
        );
        assert!(changed > 0, "{program}: no kill came while settings were changed");
        assert!(failed_over > 4 || other.is_none(), "{program}: {failed_over} failovers");
        end(load, Signal::TERM);
        private.end();
        other.map(Private::end);
    }
}
