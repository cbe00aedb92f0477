//! `tune` killed at any moment on every server that there is: after `restore` no setting of InnoDB
//! differs.

use std::time::Duration;

use iostrata_server::private::ServerProgram;
use rustix::process::Signal;

use crate::harness::{Bench, is_soak, stderr, stdout, usual_or_soak};
use crate::server::{Private, programs};
use crate::tune::{RATE, ROWS, end, load, options_of, settings, start, wait_until_tuned};

/// Milliseconds to the kill of `tune` from its start; in the usual form a tenth of it from its
/// first change.
fn alive_ms(kill: u64) -> u64 {
    200 + (kill * 2_654_435_761 + 1) % 5_600
}

#[test]
fn restore_leaves_no_difference_wherever_tune_was_killed() {
    let kills = usual_or_soak(2, 20);
    for program in programs() {
        let bench = Bench::new();
        let found = ServerProgram::find(&program).unwrap();
        let options = options_of(&found);
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &[]);
        let before = settings(&private);
        let load = load(&bench, &private, ROWS, RATE);
        let target = private.target("root", "oltp");
        let mut changed = 0;
        for kill in 0..kills {
            let tune = start(&bench, &format!("tune {target} --quiet --out RUN{kill}"));
            // Every other one is killed soon after it has set something.
            let is_late = kill % 2 == 1;
            if is_late {
                wait_until_tuned(&private, &before);
            }
            let share = if is_late && !is_soak() { 10 } else { 1 };
            std::thread::sleep(Duration::from_millis(alive_ms(kill) / share));
            end(tune, Signal::KILL);
            changed += u32::from(settings(&private) != before);
            let restored = bench.line(&format!("restore --target {target}"));
            let said = format!("{}{}", stdout(&restored), stderr(&restored));
            assert!(restored.status.success(), "{program}, kill {kill}: {said}");
            let now = settings(&private);
            let differs: Vec<_> =
                before.iter().filter(|(name, was)| now.get(*name) != Some(was)).collect();
            assert!(differs.is_empty(), "{program}, kill {kill}: {differs:?}; {said}");
        }
        eprintln!("{program}: {kills} kills, {changed} with changed settings, 0 differ");
        assert!(changed > 0, "{program}: no kill came while settings were changed");
        end(load, Signal::TERM);
        private.end();
    }
}
