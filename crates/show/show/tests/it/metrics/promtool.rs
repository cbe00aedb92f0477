//! Prometheus's own judgement of the text and of the shipped rules.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::metrics::{board, is_installed};

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/prometheus").join(file)
}

fn promtool(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// promtool's complaints; its exit code covers what cannot be read and what is badly named.
fn assert_clean(output: &Output) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    if !is_installed("promtool") {
        return;
    }
    let text = board().text();
    let output = promtool(&["check", "metrics"], &text);
    assert_clean(&output);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    // It would complain: a counter without its ending, a value that is none.
    for wrong in [text.replace("_stalls_total", "_stalls"), format!("{text}iostrata_x y\n")] {
        assert!(!promtool(&["check", "metrics"], &wrong).stderr.is_empty());
    }
}

#[test]
fn promtool_finds_nothing_wrong_with_the_shipped_rules() {
    if !is_installed("promtool") {
        return;
    }
    assert_clean(&promtool(
        &["check", "rules", shipped("iostrata-alerts.yml").to_str().unwrap()],
        "",
    ));
}

#[test]
fn the_shipped_rules_fire_when_they_should() {
    if !is_installed("promtool") {
        return;
    }
    let path = shipped("iostrata-alerts-test.yml");
    assert_clean(&promtool(&["test", "rules", path.to_str().unwrap()], ""));
}
