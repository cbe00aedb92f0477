//! `tune` on a private MySQL: what is moved only where it is in the way.

use iostrata_server::private::ServerProgram;
use rustix::process::Signal;

use crate::harness::{Bench, document, stderr, wait_until};
use crate::server::programs;
use crate::under_load::{end, load, pressed_of, settings, start};

/// A limit of dirty pages that the load comes to.
const LOW_LIMIT: [&str; 2] =
    ["--innodb-max-dirty-pages-pct=20", "--innodb-max-dirty-pages-pct-lwm=0"];

#[test]
fn the_limit_of_dirty_pages_is_raised_and_put_back() {
    let found = programs().into_iter().map(|path| ServerProgram::find(&path).unwrap());
    let is_meant =
        |one: &ServerProgram| !one.version.is_mariadb && one.version.number >= (8, 0, 30);
    let Some(program) = found.into_iter().find(is_meant) else {
        eprintln!("skipped: no MySQL from 8.0.30 on; name one in IOSTRATA_TEST_PROGRAMS");
        return;
    };
    let bench = Bench::new();
    let private = pressed_of(program, &LOW_LIMIT);
    let load = load(&bench, &private);
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let tune = start(&bench, &format!("tune {target} --quiet --out levers"));
    let limit = || settings(&private)["innodb_max_dirty_pages_pct"].clone();
    wait_until("the limit of dirty pages is raised", 200, || limit().starts_with("99"));
    let ended = end(tune, Signal::TERM);
    assert_eq!(ended.status.code(), Some(143), "{}", stderr(&ended));
    let tuned = document(&bench.line("report levers --json"), "watch");
    let all = tuned["settings"].as_array().unwrap();
    let limits = all.iter().filter(|one| one["name"] == "innodb_max_dirty_pages_pct");
    let limits: Vec<&str> = limits.map(|one| one["to"].as_str().unwrap()).collect();
    assert_eq!(limits, ["99"]);
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
    private.end();
}
