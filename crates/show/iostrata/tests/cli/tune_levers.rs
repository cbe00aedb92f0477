//! `tune` on private MySQL servers: what is moved only where it is in the way, or allowed.

use iostrata_server::private::ServerProgram;
use rustix::process::Signal;

use crate::harness::{Bench, document};
use crate::server::{Private, programs};
use crate::tune::{end, load, settings};

/// A redo that goes round within seconds, and a limit of dirty pages that any load comes to.
const OPTIONS: [&str; 5] = [
    "--innodb-redo-log-capacity=8388608",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-max-dirty-pages-pct=3",
    "--innodb-max-dirty-pages-pct-lwm=0",
];

#[test]
fn the_limit_of_dirty_pages_and_with_leave_the_redo_are_raised_and_put_back() {
    let found = programs().into_iter().map(|path| ServerProgram::find(&path).unwrap());
    let is_meant =
        |one: &ServerProgram| !one.version.is_mariadb && one.version.number >= (8, 0, 30);
    let Some(program) = found.into_iter().find(is_meant) else {
        eprintln!("skipped: no MySQL from 8.0.30 on; name one in IOSTRATA_TEST_PROGRAMS");
        return;
    };
    let bench = Bench::new();
    let private = Private::of(program, tempfile::tempdir().unwrap(), &OPTIONS, &[]);
    let load = load(&bench, &private, 60);
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let moved = |config: &str, seconds: u32| {
        std::fs::write(bench.path("allowed.toml"), config).unwrap();
        let line = format!("tune {target} --config allowed.toml --time {seconds} --json --quiet");
        let tuned = document(&bench.line(&line), "watch");
        let all = tuned["settings"].as_array().unwrap().clone();
        let of = |name: &str| -> Vec<String> {
            let mine = all.iter().filter(|one| one["name"] == name);
            mine.map(|one| one["to"].as_str().unwrap().to_owned()).collect()
        };
        (of("innodb_max_dirty_pages_pct"), of("innodb_redo_log_capacity"))
    };
    let (limits, sizes) = moved("", 16);
    assert_eq!((limits, sizes), (vec!["99".to_owned()], Vec::new()), "nobody allowed the redo");
    assert_eq!(settings(&private), before);
    let (_, sizes) = moved("[innodb_redo_log_capacity]\nmax = 16777216\n", 20);
    assert_eq!(sizes, ["16777216"]);
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
    private.end();
}
