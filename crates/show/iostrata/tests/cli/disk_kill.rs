//! Servers and starters of emulated disks that are killed or hang: nothing waits, nothing is left.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::disk::{Disks, can_emulate, signal};
use crate::harness::{beside, is_soak, stderr, stdout, wait_for_end, wait_until};

/// What a start writes to its journal before it hands the disk over: its own line, and two for each
/// of two changes.
const LINES: u64 = 5;

fn kills() -> u64 {
    if is_soak() { 100 } else { 4 }
}

fn restore(disks: &Disks, when: &str) {
    let mut command = disks.0.command(&["restore"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_end(&mut child, &format!("restore {when}"));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{when}: {} {}", stdout(&output), stderr(&output));
}

fn begin(program: &str, words: &[&str]) -> Child {
    beside(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_starter_that_is_killed_leaves_nothing_that_restore_does_not_take_away() {
    if !can_emulate("a_starter_that_is_killed") {
        return;
    }
    let mut halfway = 0;
    for kill in 0..3 * kills() {
        let disks = Disks::new();
        let words = ["disk", "start", "--model", "hdd-15k", "--size", "64M"];
        let mut child = disks.0.command(&words).stdout(Stdio::null()).spawn().unwrap();
        // Each kill comes when so many lines are written, at once or a little later.
        let (lines, later_us) = (kill % (LINES + 1), kill / LINES * 12_000 / kills());
        wait_until("so many lines are in the journal", 0, || {
            let is_there = disks.0.journal().lines().count() as u64 >= lines;
            is_there || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_micros(later_us));
        child.kill().unwrap();
        child.wait().unwrap();
        let was_there = !disks.left_now().is_empty();
        let when = format!("after {lines} lines and {later_us} us");
        restore(&disks, &when);
        if disks.list().is_empty() {
            halfway += u64::from(was_there);
        }
        let stopped = disks.0.line("disk stop --all");
        assert!(stopped.status.success(), "{}", stderr(&stopped));
        assert_eq!(disks.left(), Vec::<String>::new(), "{when}");
    }
    eprintln!("{halfway} of {} kills met a disk halfway", 3 * kills());
    assert!(halfway >= kills(), "{halfway} kills met a disk halfway");
}

#[test]
fn a_server_that_is_killed_in_use_keeps_nobody_waiting() {
    if !can_emulate("a_server_that_is_killed_in_use") {
        return;
    }
    for kill in 0..kills() {
        let disks = Disks::new();
        let (device, pid) = disks.start("--model nvme --size 64M");
        let (from, to) = (format!("if={device}"), format!("of={device}"));
        // Past and through the page cache, reading and writing.
        let mut users = [
            begin("dd", &["if=/dev/zero", &to, "bs=64k", "oflag=direct"]),
            begin("dd", &["if=/dev/zero", &to, "bs=64k"]),
            begin("dd", &[&from, "of=/dev/null", "bs=4k", "iflag=direct"]),
        ];
        std::thread::sleep(Duration::from_millis(5 + kill * 37 % 200));
        signal(pid, "KILL");
        for user in &mut users {
            wait_for_end(user, "dd on a dead disk");
        }
        assert!(stderr(&disks.0.line("disk list")).contains("iostrata restore"));
        restore(&disks, "of a dead disk");
        assert_eq!(disks.left(), Vec::<String>::new(), "kill {kill}");
    }
}

#[test]
fn a_server_that_is_killed_under_a_file_system_can_be_unmounted() {
    if !can_emulate("a_server_that_is_killed_under_a_file_system") {
        return;
    }
    if Command::new("mkfs.ext4").arg("-V").stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: a_server_that_is_killed_under_a_file_system: needs mkfs.ext4");
        return;
    }
    for kill in 0..kills() {
        let disks = Disks::new();
        let (device, pid) = disks.start("--model ssd-sata --size 64M");
        let made = Command::new("mkfs.ext4").args(["-q", "-E", "nodiscard", &device]).status();
        assert!(made.unwrap().success());
        let at = disks.0.path("mnt");
        std::fs::create_dir(&at).unwrap();
        assert!(Command::new("mount").arg(&device).arg(&at).status().unwrap().success());
        let file = format!("of={}", at.join("file").display());
        let mut user = begin("dd", &["if=/dev/zero", &file, "bs=64k", "count=400", "conv=fsync"]);
        std::thread::sleep(Duration::from_millis(5 + kill * 53 % 300));
        signal(pid, "KILL");
        wait_for_end(&mut user, "dd on a dead file system");
        // One may come before the other.
        let unmount = || wait_for_end(&mut begin("umount", &[at.to_str().unwrap()]), "umount");
        if kill % 2 == 0 {
            assert!(unmount().success());
            restore(&disks, "after umount");
        } else {
            restore(&disks, "before umount");
            assert!(unmount().success());
        }
        assert_eq!(disks.left(), Vec::<String>::new(), "kill {kill}");
    }
}

#[test]
fn a_server_that_hangs_is_stopped_and_its_users_go_on() {
    if !can_emulate("a_server_that_hangs") {
        return;
    }
    let disks = Disks::new();
    let (device, pid) = disks.start("--model nvme --size 64M");
    let mut user = begin("dd", &["if=/dev/zero", &format!("of={device}"), "bs=64k"]);
    std::thread::sleep(Duration::from_millis(100));
    signal(pid, "STOP");
    let row = disks.list()[0].clone();
    assert!(row["answers"] == false && row["reads"].is_null(), "{row}");
    let fault = disks.0.run(&["disk", "fault", &device, "--slow", "1"]);
    assert_eq!(fault.status.code(), Some(3), "{}", stderr(&fault));
    let mut command = disks.0.command(&["disk", "stop", &device]);
    // What a child prints by itself is not captured with the test.
    let mut stop = command.stdout(Stdio::null()).spawn().unwrap();
    assert!(wait_for_end(&mut stop, "disk stop").success());
    wait_for_end(&mut user, "dd on a disk that hung");
    assert_eq!(disks.left(), Vec::<String>::new());
}

#[test]
fn a_server_that_was_killed_can_be_stopped_too() {
    if !can_emulate("a_server_that_was_killed_can_be_stopped_too") {
        return;
    }
    let disks = Disks::new();
    let (device, pid) = disks.start("--model nvme --size 64M");
    signal(pid, "KILL");
    let stopped = disks.0.run(&["disk", "stop", &device]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    assert_eq!(disks.left(), Vec::<String>::new());
}

#[test]
fn a_server_that_is_asked_to_end_by_hand_is_restored() {
    if !can_emulate("a_server_that_is_asked_to_end_by_hand") {
        return;
    }
    for way in ["restore", "disk stop --all"] {
        let disks = Disks::new();
        let (_, pid) = disks.start("--model nvme --size 64M");
        signal(pid, "TERM");
        let place = format!("/proc/{pid}");
        wait_until("the server has ended", 20, || !Path::new(&place).exists());
        // It unmounted itself under its loop device.
        assert!(disks.0.line(way).status.success());
        assert_eq!(disks.left(), Vec::<String>::new(), "{way}");
    }
}

#[test]
fn a_start_that_is_interrupted_leaves_nothing() {
    if !can_emulate("a_start_that_is_interrupted") {
        return;
    }
    for (name, code) in [("INT", 130), ("TERM", 143), ("INT", 130), ("TERM", 143)] {
        for at_ms in [3, 8, 15, 22] {
            let disks = Disks::new();
            let words = ["disk", "start", "--model", "hdd-15k", "--size", "64M", "--quiet"];
            let mut command = disks.0.command(&words);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(at_ms));
            // It may be done by then.
            let pid = child.id().to_string();
            let _sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
            match wait_for_end(&mut child, "disk start").code() {
                Some(0) => assert_eq!(disks.list().len(), 1),
                // Before it listens the signal ends it at once, and nothing is there yet.
                None => assert_eq!(disks.left(), Vec::<String>::new()),
                ended => {
                    assert_eq!(ended, Some(code));
                    assert_eq!(disks.left(), Vec::<String>::new());
                }
            }
        }
    }
}
