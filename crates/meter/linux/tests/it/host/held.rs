//! What holds a process back, on made-up machines and on this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use iostrata_linux::host::{HeldBack, ProcessPlace, Root};
use iostrata_run::host::{CgroupVersion, HeldBackShares, LimitedRate};

use crate::host::tree::Tree;

const GROUP: &str = "/sys/fs/cgroup/db";

fn place() -> ProcessPlace {
    let pid_file = Some(PathBuf::from("server.pid"));
    ProcessPlace { dir: "/srv".into(), file: "ibdata1".to_owned(), pid_file }
}

/// A server with id 70 in the group `db`, on a disk with a limit.
fn machine() -> Tree {
    Tree::new()
        .disk("sda", "8:0")
        .mount("8:0 / / rw - ext4 /dev/sda rw")
        .mount("0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
        .place("/", "8:0")
        .file("/srv/ibdata1", "")
        .file("/srv/server.pid", "70\n")
        .file("/proc/70/cgroup", "0::/db\n")
        .file("/proc/stat", "cpu  10 0 0 90 0 0 0 0\n")
        .file("/proc/pressure/io", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n")
        .file(&format!("{GROUP}/cgroup.events"), "populated 1\n")
        .file(&format!("{GROUP}/io.pressure"), "some avg10=0.00 total=0\n")
        .file(&format!("{GROUP}/io.max"), "8:0 rbps=max wbps=max riops=max wiops=100\n")
        .file(&format!("{GROUP}/io.stat"), "8:0 rbytes=0 wbytes=0 rios=0 wios=0\n")
        .file(&format!("{GROUP}/cpu.max"), "50000 100000\n")
        .file(&format!("{GROUP}/cpu.stat"), "nr_periods 5\nnr_throttled 1\nthrottled_usec 100\n")
}

fn held_at(root: &Root, place: ProcessPlace) -> HeldBack {
    let (dir, of) = (place.dir.clone(), root.clone());
    HeldBack::of(root, &dir, Box::new(move || place.process(&of))).unwrap()
}

fn held(tree: &Tree) -> HeldBack {
    held_at(&tree.root(), place())
}

fn look(held: &mut HeldBack) -> HeldBackShares {
    sleep(Duration::from_millis(2));
    held.since_last()
}

#[test]
fn pressure_and_limits_are_those_of_the_servers_own_group() {
    let tree = machine();
    let mut held = held(&tree);
    assert_eq!(held.missing(), Vec::<String>::new());
    tree.rewrite("/proc/pressure/io", "some avg10=0.00 total=999999\n");
    tree.rewrite(&format!("{GROUP}/io.pressure"), "some avg10=2.00 total=700\n");
    tree.rewrite(&format!("{GROUP}/io.stat"), "8:0 rbytes=0 wbytes=9 rios=0 wios=1\n");
    let stat = "nr_periods 9\nnr_throttled 3\nthrottled_usec 150\n";
    tree.rewrite(&format!("{GROUP}/cpu.stat"), stat);
    tree.rewrite("/proc/stat", "cpu  20 0 0 120 0 0 0 10\n");
    let found = look(&mut held);
    assert_eq!(found.cpu_stolen_pct, Some(20.0));
    assert_eq!(found.pressure_group.as_deref(), Some("/db"));
    let pressure = found.pressure.unwrap();
    assert_eq!((pressure.io.unwrap().some_us, pressure.cpu), (700, None));
    let throttle = found.throttle.unwrap();
    assert_eq!((throttle.cpu_periods_throttled, throttle.cpu_throttled_us), (Some(2), Some(50)));
    assert!(throttle.io_limit_used_pct.unwrap() > 0.0);
    let limit = throttle.io_limit.unwrap();
    assert_eq!((limit.write_iops, limit.version), (Some(100), CgroupVersion::V2));
    assert_eq!(throttle.io_limit_rate, Some(LimitedRate::Writes));
}

#[test]
fn in_no_group_of_its_own_it_is_the_machines_pressure_and_no_throttle() {
    let tree = machine().file("/proc/70/cgroup", "0::/\n");
    let mut held = held(&tree);
    assert!(held.missing().join("\n").contains("throttle: no control group"));
    tree.rewrite("/proc/pressure/io", "some avg10=0.00 total=40\n");
    let found = look(&mut held);
    assert_eq!((found.pressure_group, found.throttle), (None, None));
    assert_eq!(found.pressure.unwrap().io.unwrap().some_us, 40);
    // The kernel may not count pressure at all.
    tree.remove("/proc/pressure");
    let mut held = held_at(&tree.root(), place());
    assert!(held.missing().join("\n").contains("psi=1"));
    assert_eq!(look(&mut held).pressure, None);
}

#[test]
fn a_server_that_moves_has_no_figures_until_the_next_look() {
    let tree = machine();
    let mut held = held(&tree);
    look(&mut held);
    tree.rewrite("/proc/70/cgroup", "0::/\n");
    assert_eq!(look(&mut held), HeldBackShares::default(), "counters of another group");
    assert!(look(&mut held).pressure.is_some());
    // A limit that is set meanwhile is found.
    tree.rewrite("/proc/70/cgroup", "0::/db\n");
    look(&mut held);
    tree.rewrite(&format!("{GROUP}/io.max"), "8:0 rbps=max wbps=max riops=max wiops=200\n");
    look(&mut held);
    let limit = look(&mut held).throttle.unwrap().io_limit.unwrap();
    assert_eq!(limit.write_iops, Some(200));
}

#[test]
fn without_the_server_there_is_the_machine_only() {
    let tree = machine();
    tree.remove("/srv/server.pid");
    let mut held = held(&tree);
    let missing = held.missing().join("\n");
    assert!(missing.contains("pressure of its own: its process is not found"), "{missing}");
    assert!(missing.contains("throttle: its process is not found"), "{missing}");
    let found = look(&mut held);
    assert!(found.pressure.is_some() && found.throttle.is_none());
    assert_eq!(found.pressure_group, None);
}

/// A group of version 2 with a process in it; both end with the test.
struct Grouped {
    dir: PathBuf,
    child: Child,
}

impl Grouped {
    /// Nothing where no group can be made.
    fn begin(data: &Path) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let tree = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let name = format!("iostrata-held-{}", std::process::id());
        let dir = Path::new(tree.split(' ').nth(1)?).join(name);
        fs::create_dir(&dir).ok()?;
        let write = "exec 3<ibdata1; echo $$ > server.pid; while kill -0 $PPID; do dd if=/dev/zero of=x \
                     bs=4k count=50 oflag=dsync 2>/dev/null; done";
        let child = Command::new("sh")
            .args(["-c", write])
            .current_dir(data)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let grouped = Self { dir, child };
        fs::write(grouped.dir.join("cgroup.procs"), grouped.child.id().to_string()).ok()?;
        Some(grouped)
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
        for _ in 0..100 {
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_process_that_waits_for_its_disk_puts_its_own_group_under_pressure() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("ibdata1"), "").unwrap();
    let Some(grouped) = Grouped::begin(data.path()) else {
        eprintln!("skipped: no control group of version 2 can be made; run as root");
        return;
    };
    let place = ProcessPlace { dir: data.path().to_owned(), ..place() };
    let is_told = (0..100).any(|_| {
        sleep(Duration::from_millis(50));
        data.path().join("server.pid").exists() && data.path().join("x").exists()
    });
    assert!(is_told, "the process writes");
    let mut held = held_at(&Root::system(), place);
    let name = format!("/{}", grouped.dir.file_name().unwrap().to_string_lossy());
    let waited = (0..100).find_map(|_| {
        sleep(Duration::from_millis(50));
        let found = held.since_last();
        let pressure = found.pressure?;
        assert_eq!(found.pressure_group.as_deref(), Some(name.as_str()));
        pressure.io.filter(|io| io.some_us > 0)
    });
    if !grouped.dir.join("io.pressure").exists() {
        eprintln!("skipped: this kernel reports no pressure of groups");
        return;
    }
    assert!(waited.is_some(), "writing and syncing waits for the disk");
}
