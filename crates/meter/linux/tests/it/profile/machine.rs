//! Windows on the running kernel. They need the right to sample it, and skip without.

use std::time::Duration;

use iostrata_linux::profile::{ProfileError, ProfileOptions, Profiler};
use iostrata_run::host::{KernelLayer, Profile};

use crate::profile::work;

const THREADS: u64 = 16;

/// A profiler; absent, with a line that gives the reason, where the system allows none.
fn profiler(options: ProfileOptions) -> Option<Profiler> {
    match Profiler::open(&options) {
        Ok(profiler) => Some(profiler),
        Err(error @ (ProfileError::NotPermitted { .. } | ProfileError::Unsupported { .. })) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn writing(profiler: &mut Profiler, file: &std::fs::File) -> Profile {
    profiler.start().unwrap();
    let writes = work::write_randomly(file, THREADS, Duration::from_secs(1));
    profiler.stop().unwrap();
    assert!(writes > 0.0);
    profiler.take().unwrap()
}

fn assert_sums(profile: &Profile) {
    let layers: u64 = profile.layers.iter().map(|row| row.samples).sum();
    let stacks: u64 = profile.stacks.iter().map(|row| row.samples).sum();
    assert_eq!(layers, profile.samples);
    assert_eq!(stacks + profile.stacks_rest_samples, profile.samples);
    let pct: f64 = profile.layers.iter().map(|row| row.pct).sum();
    assert!(profile.samples == 0 || (pct - 100.0).abs() < 1e-6, "{pct}");
}

fn has(profile: &Profile, layer: KernelLayer) -> bool {
    profile.layers.iter().any(|row| row.layer == layer)
}

#[test]
fn direct_writes_show_their_way_and_their_waits() {
    let options = ProfileOptions { off_cpu: true, ..ProfileOptions::default() };
    let Some(mut profiler) = profiler(options) else { return };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = match work::prefilled(&dir.path().join("file")) {
        Ok(file) => file,
        Err(error) => return eprintln!("skipped: no direct I/O here: {error}"),
    };
    for _ in 0..2 {
        let profile = writing(&mut profiler, &file);
        if std::env::var_os("PROFILE_SHOW").is_some() {
            eprintln!("{profile:#?}");
        }
        assert_sums(&profile);
        assert!(profile.samples > 0 && profile.seconds >= 1.0);
        if profile.notes.iter().any(|note| note.contains("hides its addresses")) {
            return eprintln!("skipped: the kernel hides its addresses");
        }
        assert!(
            has(&profile, KernelLayer::Block) || has(&profile, KernelLayer::Driver),
            "{:?}",
            profile.layers
        );
        let off_cpu = profile.off_cpu.as_ref().unwrap();
        let most_us = (THREADS + 3) as f64 * off_cpu.seconds * 1e6;
        assert!(off_cpu.total_us > 0.0 && off_cpu.total_us <= most_us, "{off_cpu:?}");
        assert!(u64::from(off_cpu.threads) >= THREADS, "{}", off_cpu.threads);
        let device = off_cpu.layers.iter().find(|row| row.layer == KernelLayer::Device);
        assert!(device.is_some_and(|row| row.count > 100), "{:?}", off_cpu.waits);
        let waits: f64 = off_cpu.waits.iter().map(|row| row.total_us).sum();
        assert!((waits + off_cpu.waits_rest_us - off_cpu.total_us).abs() < 1.0);
    }
}

#[test]
fn an_idle_machine_is_idle() {
    let Some(mut profiler) = profiler(ProfileOptions::default()) else { return };
    profiler.start().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    profiler.stop().unwrap();
    let profile = profiler.take().unwrap();
    assert_sums(&profile);
    assert!(profile.off_cpu.is_none());
    let expected = f64::from(profile.hz) * f64::from(profile.cpus) * profile.seconds;
    let is_short = profile.notes.iter().any(|note| note.contains("never came"));
    if profile.notes.is_empty() || !is_short {
        assert!(profile.samples as f64 > 0.8 * expected, "{} of {expected}", profile.samples);
    }
    assert!((profile.samples as f64) < 1.1 * expected + 10.0, "{} of {expected}", profile.samples);
}

#[test]
fn this_process_alone_is_less_than_the_machine() {
    let options = ProfileOptions { system_wide: false, off_cpu: true, ..ProfileOptions::default() };
    let Some(mut profiler) = profiler(options) else { return };
    profiler.start().unwrap();
    // A thread that is started within the window is seen too, and so is its sleep.
    std::thread::spawn(|| std::thread::sleep(Duration::from_millis(20))).join().unwrap();
    profiler.stop().unwrap();
    let profile = profiler.take().unwrap();
    assert_sums(&profile);
    assert!(!has(&profile, KernelLayer::Idle), "{:?}", profile.layers);
    assert!(profile.notes.iter().any(|note| note.contains("only this process")));
    let off_cpu = profile.off_cpu.unwrap();
    let slept = off_cpu.waits.iter().find(|wait| wait.symbol.contains("nanosleep"));
    assert!(slept.is_some_and(|wait| wait.total_us >= 20_000.0), "{:?}", off_cpu.waits);
}

#[test]
fn steps_out_of_order_are_refused() {
    let zero = Profiler::open(&ProfileOptions { hz: 0, ..ProfileOptions::default() });
    assert!(matches!(zero, Err(ProfileError::Rate { found: 0, .. })));
    let Some(mut profiler) = profiler(ProfileOptions::default()) else { return };
    assert!(matches!(profiler.take(), Err(ProfileError::OutOfOrder { asked: "take", .. })));
    assert!(matches!(profiler.stop(), Err(ProfileError::OutOfOrder { asked: "stop", .. })));
    profiler.start().unwrap();
    assert!(matches!(profiler.start(), Err(ProfileError::OutOfOrder { asked: "start", .. })));
    profiler.stop().unwrap();
    profiler.take().unwrap();
    profiler.start().unwrap();
    profiler.stop().unwrap();
    profiler.take().unwrap();
}
