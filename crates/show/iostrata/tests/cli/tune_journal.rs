//! `tune` whose journal lies on a disk that is full, or that the kernel has made read-only: the
//! server gets its own settings back all the same, and afterwards nothing is left.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Bench, stderr, stdout};
use crate::under_load::{end, load, pressed, settings, start_told, wait_until_tuned};

/// An ext4 of 16 MB on a loop device, where a test has its state. Its blocks are the smallest, so
/// that the one at a journal's end takes few more lines on a full disk.
struct StateDisk {
    image: PathBuf,
    mounted: PathBuf,
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

impl StateDisk {
    /// None where this user may mount nothing, which it prints.
    fn mount(bench: &Bench) -> Option<Self> {
        let disk = Self { image: bench.path("image"), mounted: bench.path("state") };
        fs::create_dir(&disk.mounted).unwrap();
        File::create(&disk.image).unwrap().set_len(16 << 20).unwrap();
        let (image, mounted) = (disk.image.to_str().unwrap(), disk.mounted.to_str().unwrap());
        let is_there = runs("mkfs.ext4", &["-q", "-b", "1024", image])
            && runs("mount", &["-o", "loop,errors=remount-ro", image, mounted]);
        if !is_there {
            eprintln!("skipped: needs root and mkfs.ext4, to mount a small file system");
        }
        is_there.then_some(disk)
    }

    fn fill(&self) {
        let mut filler = File::create(self.mounted.join("filler")).unwrap();
        // What is left after whole blocks, too.
        for part in [vec![1_u8; 1 << 16], vec![1_u8; 1 << 10], vec![1_u8]] {
            while filler.write_all(&part).is_ok() {}
        }
        filler.sync_all().unwrap();
    }

    /// As after an error that the kernel has found: files that are open can be written no more.
    fn make_read_only(&self) {
        let device = Command::new("findmnt").args(["-no", "SOURCE"]).arg(&self.mounted).output();
        let device = stdout(&device.unwrap());
        let name = device.trim().rsplit('/').next().unwrap();
        fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap();
        assert!(File::create(self.mounted.join("none")).is_err(), "it is read-only");
    }

    /// What was written is there, and more can be.
    fn mend(&self) {
        let (image, mounted) = (self.image.to_str().unwrap(), self.mounted.to_str().unwrap());
        let _none = fs::remove_file(self.mounted.join("filler"));
        assert!(runs("umount", &[mounted]));
        // Errors that were found and put right give another code than 0.
        let _mended = runs("fsck.ext4", &["-fy", image]);
        assert!(runs("mount", &["-o", "loop", image, mounted]));
    }
}

impl Drop for StateDisk {
    fn drop(&mut self) {
        runs("umount", &["--lazy", self.mounted.to_str().unwrap()]);
    }
}

#[test]
fn a_journal_that_cannot_be_written_keeps_no_setting_from_going_back() {
    let Some(private) = pressed(&[]) else { return };
    let of_load = Bench::new();
    let load = load(&of_load, &private);
    let before = settings(&private);
    let target = private.target("root", "oltp");
    for name in ["full", "read-only"] {
        for signal in [Signal::TERM, Signal::KILL] {
            let bench = Bench::new();
            let Some(disk) = StateDisk::mount(&bench) else { return };
            let tune = start_told(&bench, &format!("tune {target} --json --out RUN"), "said");
            wait_until_tuned(&private, &before);
            match name {
                "full" => disk.fill(),
                _ => disk.make_read_only(),
            }
            let said = || fs::read_to_string(bench.path("said")).unwrap();
            let told = format!("{name}, {signal:?}");
            if signal == Signal::TERM {
                // The next change cannot be written down, and so is not made: that ends it.
                let ended = tune.wait();
                assert_eq!(ended.status.code(), Some(3), "{told}: {}", said());
                // A write that is under way when the file system fails gets its error instead.
                let why: &[&str] = match name {
                    "full" => &["No space left"],
                    _ => &["Read-only file system", "Input/output error"],
                };
                assert!(why.iter().any(|why| said().contains(why)), "{told}: {}", said());
            } else {
                end(tune, signal);
            }
            let restored = |is_broken: bool| {
                let output = bench.line("restore");
                let said = format!("{told}: {}{}{}", said(), stdout(&output), stderr(&output));
                assert!(output.status.success() || is_broken, "{said}");
                assert_eq!(settings(&private), before, "{said}");
            };
            if signal == Signal::TERM {
                assert_eq!(settings(&private), before, "{told}: {}", said());
            }
            // On the broken disk, then on one that is whole again.
            restored(true);
            disk.mend();
            restored(false);
            assert_eq!(bench.journal(), "", "{told}: {}", said());
        }
    }
    end(load, Signal::TERM);
    private.end();
}
