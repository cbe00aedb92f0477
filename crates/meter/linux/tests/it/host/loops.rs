//! Real file systems on loop devices of their own, where root and the tools are there.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use iostrata_linux::host::{HostObserver, Observer, ObserverOptions, Root, Scope, describe_path};
use iostrata_run::host::{Evidence, LayerKind, OwnIo, PathFacts, PathKind};
use iostrata_stats::Verdict;
use tempfile::TempDir;

/// A file system on new loop devices, taken down again when dropped.
struct LoopMount {
    dir: TempDir,
    devices: Vec<String>,
    mounted: bool,
}

impl LoopMount {
    /// Makes and mounts `file_system` on `count` devices; the error names what is missing.
    fn make(file_system: &str, options: &[&str], count: usize) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("loop devices need root".to_owned());
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|e| e.to_string())?;
        let mut made = Self { dir, devices: Vec::new(), mounted: false };
        for number in 0..count {
            let image = made.dir.path().join(format!("image{number}"));
            let file = File::create(&image).map_err(|e| e.to_string())?;
            file.set_len(320 << 20).map_err(|e| e.to_string())?;
            let image = image.to_string_lossy().into_owned();
            made.devices.push(run("losetup", &["--find", "--show", &image])?);
        }
        let mut arguments = options.to_vec();
        arguments.extend(made.devices.iter().map(String::as_str));
        run(&format!("mkfs.{file_system}"), &arguments)?;
        let point = made.point();
        fs::create_dir(&point).map_err(|e| e.to_string())?;
        run("mount", &["-t", file_system, &made.devices[0], &point.to_string_lossy()])?;
        made.mounted = true;
        Ok(made)
    }

    fn point(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    fn device_names(&self) -> Vec<&str> {
        self.devices.iter().map(|device| device.trim_start_matches("/dev/")).collect()
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        if self.mounted {
            run("umount", &[&self.point().to_string_lossy()]).ok();
        }
        for device in &self.devices {
            run("losetup", &["--detach", device]).ok();
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program} cannot be started: {e}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn mounted(test: &str, file_system: &str, options: &[&str], count: usize) -> Option<LoopMount> {
    LoopMount::make(file_system, options, count)
        .map_err(|reason| eprintln!("skipped: {test}: {reason}"))
        .ok()
}

#[test]
fn a_btrfs_on_two_devices_leads_to_both_and_to_the_disk_below() {
    let test = "a_btrfs_on_two_devices_leads_to_both_and_to_the_disk_below";
    let options = ["-q", "-f", "-K", "-d", "raid1"];
    let Some(btrfs) = mounted(test, "btrfs", &options, 2) else { return };
    let subvolume = btrfs.point().join("sub");
    run("btrfs", &["subvolume", "create", &subvolume.to_string_lossy()]).unwrap();
    let root = Root::system();
    let facts = describe_path(&root, &subvolume.join("file")).unwrap();
    assert_eq!(facts.file_system.as_deref(), Some("btrfs"));
    assert!(facts.device_number.unwrap().is_anonymous());
    let mut tops: Vec<&str> = facts
        .block_stack
        .iter()
        .filter(|layer| layer.depth == 0)
        .map(|layer| layer.name.as_str())
        .collect();
    tops.sort_unstable();
    let mut made = btrfs.device_names();
    made.sort_unstable();
    assert_eq!(tops, made);
    let is_loop = |kind: &LayerKind| matches!(kind, LayerKind::Loop { backing_file: Some(_), .. });
    assert!(facts.block_stack.iter().take(2).all(|layer| is_loop(&layer.kind)));
    let below = describe_path(&root, btrfs.dir.path()).unwrap();
    for layer in &below.block_stack {
        assert!(facts.block_stack.iter().any(|found| found.name == layer.name), "{layer:?}");
    }
}

/// An overlay in a directory of its own, unmounted when dropped.
struct Overlay(TempDir);

impl Drop for Overlay {
    fn drop(&mut self) {
        run("umount", &[&self.0.path().join("merged").to_string_lossy()]).ok();
    }
}

fn overlay() -> Result<Overlay, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("mounting needs root".to_owned());
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|e| e.to_string())?;
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(dir.path().join(name)).map_err(|e| e.to_string())?;
    }
    let at = dir.path().to_string_lossy().into_owned();
    let options = format!("lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work");
    run("mount", &["-t", "overlay", "overlay", "-o", &options, &format!("{at}/merged")])?;
    Ok(Overlay(dir))
}

#[test]
fn a_real_overlay_leads_to_the_disk_of_its_upper_directory() {
    let overlay = match overlay() {
        Ok(overlay) => overlay,
        Err(reason) => {
            eprintln!("skipped: a_real_overlay_leads_to_the_disk_of_its_upper_directory: {reason}");
            return;
        }
    };
    let root = Root::system();
    let merged = overlay.0.path().join("merged");
    fs::write(merged.join("file"), "x").unwrap();
    let below = describe_path(&root, overlay.0.path()).unwrap();
    for path in [merged.clone(), merged.join("file"), merged.join("new")] {
        let facts = describe_path(&root, &path).unwrap();
        let PathKind::Overlay { upper, upper_file_system, .. } = &facts.kind else {
            panic!("{:?}", facts.kind)
        };
        assert!(upper.as_deref().is_some_and(|upper| upper.ends_with("/upper")));
        assert_eq!(upper_file_system, &below.file_system);
        assert_eq!(facts.block_stack, below.block_stack);
    }
}

const APPENDS: u64 = 300;

/// A load that flushes after every small append makes a file system write far more than the data.
/// No one else uses these devices, so whatever is raised is raised wrongly.
#[test]
fn own_journals_and_trees_are_not_foreign() {
    let kinds: [(&str, &[&str], usize); 4] = [
        ("ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"], 1),
        ("xfs", &["-q"], 1),
        ("btrfs", &["-q", "-f", "-K"], 1),
        ("btrfs", &["-q", "-f", "-K", "-d", "raid1"], 2),
    ];
    for (file_system, options, count) in kinds {
        let test = format!("own_journals_and_trees_are_not_foreign: {file_system}");
        let Some(mount) = mounted(&test, file_system, options, count) else { continue };
        let facts = describe_path(&Root::system(), &mount.point()).unwrap();
        let evidence = observe_appends(&facts, &mount.point().join("log"), APPENDS);
        let foreign = evidence.foreign.as_ref().unwrap();
        assert!(!foreign.raised, "{file_system} on {count}: {foreign:?}");
        let flushed = evidence.device_delta.unwrap().written_bytes();
        assert!(flushed >= APPENDS * 4096, "{file_system}: {flushed} bytes");
        assert!(!evidence.verdicts.has(Verdict::Cached));
    }
}

/// Observes appends of 4 KiB, each followed by fsync.
fn observe_appends(facts: &PathFacts, path: &Path, appends: u64) -> Evidence {
    let root = Root::system();
    let mut file = File::create(path).unwrap();
    let mut observer = HostObserver::new(root.clone(), ObserverOptions::default());
    observer.arm(&Scope::of(&root, facts)).unwrap();
    observer.start().unwrap();
    for _ in 0..appends {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_all().unwrap();
    }
    observer.stop().unwrap();
    let own = OwnIo {
        direct: true,
        writes: appends,
        written_bytes: appends * 4096,
        flushes: appends,
        ..OwnIo::default()
    };
    observer.take(Some(&own)).unwrap()
}
