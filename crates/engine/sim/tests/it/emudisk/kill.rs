//! A server that is killed leaves no process waiting.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::emudisk::served::{MIB, Served, can_serve, run, wait_for};

#[test]
fn no_process_waits_for_a_killed_server() {
    if !can_serve("no_process_waits_for_a_killed_server", &["dd"]) {
        return;
    }
    for (disk, direction) in [("hdd-15k", "if"), ("hdd-15k", "of"), ("nvme-no-plp", "if")] {
        let mut served = Served::start(disk, 256 * MIB);
        let direct = if direction == "if" { "iflag=direct" } else { "oflag=direct" };
        let other = if direction == "if" { "of=/dev/null" } else { "if=/dev/zero" };
        let mut dd = Command::new("dd")
            .arg(format!("{direction}={}", served.device.display()))
            .args([other, direct, "bs=4k", "status=none"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let before = served.stats();
        wait_for("requests arrive", || {
            let now = served.stats();
            now.reads + now.writes > before.reads + before.writes + 3
        });
        served.kill();
        let mut ended = None;
        wait_for("dd ends", || {
            ended = dd.try_wait().unwrap();
            ended.is_some()
        });
        assert!(!ended.unwrap().success(), "dd went on without a disk");
        let error = served.client.stats().unwrap_err();
        assert!(error.to_string().contains("no disk is served"), "{error}");
        // The rest of the test's end detaches and unmounts; it must not wait either.
        let device = served.device.to_str().unwrap();
        assert!(run("losetup", &["--detach", device]).status.success());
        std::thread::sleep(Duration::from_millis(20));
        assert!(run("umount", &["--lazy", served.at().to_str().unwrap()]).status.success());
    }
}
