//! `restore`, and what other commands print about a run that was killed.

use std::fs;

use crate::harness::{Bench, stderr, stdout};

/// The journal of a process of another boot, which held one file.
fn leave(bench: &Bench) {
    fs::create_dir_all(bench.path("state")).unwrap();
    let file = bench.path("left");
    fs::write(&file, "").unwrap();
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs::set_permissions(&file, permissions).unwrap();
    let file = fs::canonicalize(file).unwrap();
    let owner = r#"{"pid":1,"start_ticks":1,"boot_id":"before"}"#;
    let lines = format!(
        "{{\"record\":\"journal\",\"version\":1,\"owner\":{owner}}}\n\
         {{\"record\":\"intent\",\"id\":1,\"change\":{{\"change\":\"backing_file\",\"path\":{file:?},\
         \"bytes\":4096,\"prewrite\":\"all\"}},\"before\":{{\"prior\":\"no_file\",\"at_us\":1}}}}\n\
         {{\"record\":\"done\",\"id\":1,\"aft"
    );
    fs::write(bench.path("state/changes-1-1-0.jsonl"), lines).unwrap();
}

#[test]
fn restore_says_that_nothing_is_left() {
    let bench = Bench::new();
    for line in ["restore", "restore --target mysql://a@b:1/c", "restore --json --quiet"] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        assert!(!stdout(&output).is_empty(), "{line}");
    }
    assert!(!bench.path("state").exists(), "looking leaves no trace");
}

#[test]
fn a_target_is_checked_and_its_password_is_not_repeated() {
    let bench = Bench::new();
    for (target, code, words) in [
        ("mysql://a:secret@b:1/c", 0, "Nothing of mysql://a@b:1/c is left"),
        ("mysq://a:secret@b:1/c", 2, "--target"),
        ("engine:E", 0, "Nothing of engine:E is left"),
    ] {
        let output = bench.line(&format!("restore --target {target}"));
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let said = stderr(&output) + &stdout(&output);
        assert!(said.contains(words) && !said.contains("secret"), "{said}");
    }
}

#[test]
fn a_killed_run_is_mentioned_and_put_back() {
    let bench = Bench::new();
    leave(&bench);
    let null = "io --path F --ioengine null --size 1M --runtime 10ms";
    let said = stderr(&bench.line(null));
    assert!(said.contains("iostrata restore") && said.contains("left of 4 KiB"), "{said}");
    assert_eq!(stderr(&bench.line(&format!("{null} --quiet"))), "");
    let output = bench.line("restore");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("undone: make the file"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "", "it does not mention what it is about to do");
    assert!(!bench.path("left").exists());
    assert!(stdout(&bench.line("restore")).starts_with("Nothing is left"));
    assert!(!stderr(&bench.line(null)).contains("restore"));
}

#[test]
fn what_cannot_be_put_back_is_an_error_and_stays() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("state")).unwrap();
    fs::write(bench.path("state/changes-1-1-0.jsonl"), "{\"record\":\"of the future\"}\n").unwrap();
    let output = bench.line("restore --json");
    assert_eq!(output.status.code(), Some(3));
    let document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(document["journals"][0]["state"], "unsettled");
    assert_eq!(document["journals"][0]["damaged_lines"], 1);
    assert!(bench.path("state/changes-1-1-0.jsonl").exists());
}
