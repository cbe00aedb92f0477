//! Studies as users and other programs call them.

use std::fs::read_to_string;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Bench, document, is_soak, stderr, stdout};

fn may_change() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let ready = is_root && Path::new("/dev/loop-control").exists();
    if !ready {
        eprintln!("skipped: loop devices need root and /dev/loop-control");
    }
    ready
}

#[test]
fn shipped_studies_are_named_and_shown() {
    let bench = Bench::new();
    let listed = stdout(&bench.line("study list"));
    for name in ["fusion-io", "ext4-vs-xfs", "limits", "queue-size", "server-vs-engine", "smoke"] {
        assert!(listed.contains(&format!("{name}  ")), "{name} is not in {listed}");
        let shown = bench.line(&format!("study show {name}"));
        assert!(shown.status.success(), "{}", stderr(&shown));
        for part in ["Cost", "System changes", "Points"] {
            assert!(stdout(&shown).contains(part), "{part} is not shown for {name}");
        }
    }
    let plan: Value =
        serde_json::from_str(&stdout(&bench.line("study show fusion-io --json"))).unwrap();
    assert!(plan["plan"]["cells"].as_array().or(plan["cells"].as_array()).unwrap().len() >= 130);
}

#[test]
fn a_dry_run_of_the_exact_call_changes_nothing() {
    let bench = Bench::new();
    let output = bench.line("study run fusion-io --quick --out RUN --json --dry-run");
    assert!(output.status.success(), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let changes = shown["changes"].as_array().unwrap();
    assert!(changes.iter().any(|change| change.as_str().unwrap().contains("xfs")), "{changes:?}");
    assert!(!bench.path("RUN").exists() && !bench.path("state").exists());
}

/// Every number that is a result has an interval and a count.
fn assert_points(document: &Value, count: usize) {
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), count, "{:#}", document["unavailable"]);
    for point in points {
        let value = point["value"].as_f64().unwrap();
        assert!(value > 0.0, "{point}");
        assert!(point["value_ci95"][0].as_f64().unwrap() <= value);
        assert!(point["value_n"].as_u64().unwrap() > 0);
        assert!(point["levels"].as_array().unwrap().len() >= 3);
        assert!(point["device"].is_object() && point["cpu"].is_object(), "evidence: {point}");
    }
}

#[test]
fn a_study_on_loop_devices_measures_reports_and_puts_back() {
    if !may_change() {
        return;
    }
    let bench = Bench::new();
    let (form, points) = if is_soak() { ("--full", 12) } else { ("--quick", 8) };
    let output = bench.line(&format!("study run smoke {form} --out RUN --json"));
    let document = document(&output, "study");
    assert_points(&document, points);
    assert_eq!(document["interrupted"], false);
    assert!(document["effects"].as_array().unwrap().iter().any(|one| one["factor"] == "rw"));
    assert!(document["changes"].as_array().unwrap().len() >= 5);
    assert!(
        document["fixed_minute_s"].as_f64().unwrap() > document["duration_s"].as_f64().unwrap()
    );
    assert!(bench.path("RUN/report.html").metadata().unwrap().len() > 30_000);
    assert!(!bench.path("RUN/volumes").exists(), "the volumes are gone");
    let left = std::fs::read_dir(bench.path("state")).into_iter().flatten().flatten().count();
    assert_eq!(left, 0, "no journal is left");
    assert!(stdout(&bench.line("restore")).starts_with("Nothing is left"));
    let run = std::fs::canonicalize(bench.path("RUN")).unwrap().display().to_string();
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices.filter_map(|one| read_to_string(one.path().join("loop/backing_file")).ok());
    let left: Vec<String> = files.filter(|file| file.contains(&run)).collect();
    assert_eq!(left, [""; 0], "no loop device is left");
    compare_two_points(&bench, &document);
}

fn compare_two_points(bench: &Bench, document: &Value) {
    let id = |at: usize| document["points"][at]["id"].as_str().unwrap().to_owned();
    let (a, b) = (id(0), id(1));
    let diff = bench.line(&format!("study diff {a} {b} --run RUN"));
    assert!(diff.status.success(), "{}", stderr(&diff));
    assert!(stdout(&diff).contains(&a) && stdout(&diff).contains(&b), "{}", stdout(&diff));
    let output = bench.line(&format!("study diff RUN:{a} RUN:{b} --json"));
    let shown = crate::harness::document(&output, "study-diff");
    assert_eq!(shown["a"]["id"], a.as_str());
    let unknown = bench.line(&format!("study diff {a} nobody --run RUN"));
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains(&a), "it names the points there are");
    let shown = bench.line("report RUN --format terminal");
    assert!(stdout(&shown).lines().count() > 10);
}

#[test]
fn a_study_of_emulated_disks_says_what_it_starts() {
    let bench = Bench::new();
    let output = bench.line("study run queue-size --quick --out RUN --json --dry-run");
    assert!(output.status.success(), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let changes: Vec<&str> =
        shown["changes"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    for thing in ["disk serve --disk hdd-15k", "disk serve --disk ssd-sata", "vm.dirty_bytes"] {
        assert!(changes.iter().any(|change| change.contains(thing)), "{thing}: {changes:?}");
    }
    assert!(!bench.path("RUN").exists() && !bench.path("state").exists());
    if !may_change() || !Path::new("/dev/loop0").exists() {
        return;
    }
    let refused = bench.line("study run queue-size --device /dev/loop0 --out RUN");
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--device") && said.contains("leave --device"), "{said}");
}

const DISKS: &str = "name = \"disks\"\ntitle = \"t\"\nquestion = \"q\"\n[base]\nsize = \"16M\"\n\
    rw = \"randwrite\"\ndirect = true\nscheduler = \"mq-deadline\"\nmemory_limit = \"64M\"\n\
    [factors]\ndisk = [\"nvme\", \"ssd-sata,queue=1\"]\nfilesystem = [\"raw\", \"ext4\"]\n\
    nr_requests = [32, 64]\n[measure]\nreplicates = 3\nbudget = \"5s\"\npoint_time = \"100ms\"\n";

#[test]
fn emulated_disks_are_measured_and_go_again() {
    if !may_change() || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: needs /dev/fuse");
        return;
    }
    let bench = Bench::new();
    std::fs::write(bench.path("disks.toml"), DISKS).unwrap();
    let output = bench.line("study run disks.toml --out RUN --json --no-trace");
    let document = document(&output, "study");
    assert_points(&document, 8);
    for point in document["points"].as_array().unwrap() {
        let reached = &point["emulated"];
        assert!(reached["writes"].as_u64().unwrap() > 0, "{point}");
        let disk = point["levels"][0]["level"].as_str().unwrap();
        assert_eq!(reached["model"], disk, "each volume has its own disk");
        let taken = point["queue"].as_array().unwrap();
        assert!(taken.iter().any(|one| one["attribute"] == "nr_requests"), "{taken:?}");
    }
    assert!(!document["queue_changes"].as_array().unwrap().is_empty());
    assert!(!bench.path("RUN/volumes").exists(), "the volumes are gone");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(bench.path("").to_str().unwrap()), "{mounts}");
    assert!(stdout(&bench.line("restore")).starts_with("Nothing is left"));
}

#[test]
fn a_directory_is_studied_without_changing_anything() {
    let bench = Bench::new();
    let study = "name = \"here\"\ntitle = \"t\"\nquestion = \"q\"\n[base]\nsize = \"16M\"\n[factors]\nfiles = [1, 4]\n\
                 rw = [\"randread\", \"randwrite\"]\n[measure]\nreplicates = 3\n\
                 point_time = \"100ms\"\n";
    std::fs::write(bench.path("here.toml"), study).unwrap();
    let output = bench.line("study run here.toml --out RUN --json --no-trace");
    let document = document(&output, "study");
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 4, "{:#}", document["unavailable"]);
    assert_eq!(document["changes"].as_array().unwrap().len(), 0);
    // Only its own files were written down, and those are gone.
    assert_eq!(std::fs::read_dir(bench.path("state")).unwrap().count(), 0);
}

#[test]
fn bad_studies_name_file_line_column_and_fix() {
    let bench = Bench::new();
    let cases = [
        ("colour = 1\n", "bad.toml:4:1", "colour"),
        ("[factors]\nbs = []\n", "bad.toml:5:", "bs"),
        ("[factors]\nfilesystem = [\"zfs\"]\n", "bad.toml:5:", "zfs"),
        ("[factors]\nworkers = [1, \"many\"]\n", "bad.toml:5:", "many"),
        ("[factors]\nworkers = [1, 2]\n[[exclude]]\nworkers = [1, 2]\n", "bad.toml:", "workers"),
        ("question = \n", "bad.toml:4:", ""),
    ];
    for (text, place, thing) in cases {
        let text = format!("name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n{text}");
        std::fs::write(bench.path("bad.toml"), &text).unwrap();
        for command in ["study show bad.toml", "study run bad.toml"] {
            let output = bench.line(command);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{text}: {said}");
            assert!(said.contains(place) && said.contains(thing), "{text}: {said}");
        }
    }
    for line in [
        "study run nothing-of-that-name",
        "study run smoke --device /dev/nowhere",
        "study run smoke --device /dev/null",
        "study run smoke --device /dev/null --overwrite-contents /dev/zero",
        "study resume nowhere",
        "study diff a b",
    ] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(';'), "{line} names no fix: {}", stderr(&output));
    }
}

#[test]
fn a_device_that_holds_something_is_refused() {
    if !may_change() {
        return;
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find_map(|line| line.strip_suffix(" 0 0")?.split_once(" / "));
    let Some((device, _)) = root.filter(|(device, _)| device.starts_with("/dev/")) else {
        eprintln!("skipped: no block device is mounted at /");
        return;
    };
    let bench = Bench::new();
    let line = format!("study run smoke --device {device} --overwrite-contents {device} --out RUN");
    let output = bench.line(&line);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(device) && said.contains("mounted"), "{said}");
}
