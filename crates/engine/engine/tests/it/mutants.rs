//! A proof must be able to fail: with any one safeguard taken away the sweep finds damage.
//!
//! Every row names the recording whose sweep finds it. `cargo test -- --nocapture mutants` prints
//! what was seen.

use iostrata_io::disk::{Ending, Tear};

use crate::common::altered::Alteration;
use crate::common::engine::{EngineStore, How, SHAPE};
use crate::common::is_soak;
use crate::common::plan::{Live, Shape};
use crate::common::quiet::quietly;
use crate::common::record::{record, record_after};
use crate::common::sweep::{Outcome, Sweep, parse};

/// How far a sweep goes for one missing safeguard: so often over the whole run, so many images.
const PASSES: u64 = 12;
const IMAGES: usize = 300;

/// One safeguard taken away.
struct Mutant {
    name: &'static str,
    /// The recording whose sweep finds it.
    seed: u64,
    settings: &'static [(&'static str, &'static str)],
    alteration: Alteration,
    tears: &'static [Tear],
    shape: Shape,
}

const ALL: &[Tear] = &[Tear::Whole, Tear::Sectors(512), Tear::Sectors(4096)];
const GROWING: Live = &[("redo_log_capacity", &["64K", "256K"])];
const TORN: &[Tear] = &[Tear::Sectors(512)];
const WHOLE: &[Tear] = &[Tear::Whole];

fn mutant(name: &'static str, alteration: Alteration, tears: &'static [Tear]) -> Mutant {
    Mutant { name, seed: 1, settings: &[], alteration, tears, shape: SHAPE }
}

fn none() -> Alteration {
    Alteration::default()
}

/// What a recovery lacks.
fn mutants_of_recovery() -> Vec<Mutant> {
    vec![
        mutant("recovery does not sync redo", unsynced("redo-0"), ALL),
        mutant("recovery does not sync data", unsynced("data-"), ALL),
    ]
}

fn unrepeated(files: &'static str) -> Alteration {
    Alteration { unrepeated: Some(files), ..none() }
}

fn unsynced(files: &'static str) -> Alteration {
    Alteration { unsynced: Some(files), ..none() }
}

fn mutants() -> Vec<Mutant> {
    vec![
        mutant("redo is not synced", unsynced("redo-0"), ALL),
        mutant("the redo control file is not synced", unsynced("redo-control"), ALL),
        mutant("the checkpoint overtakes the pages: data are not synced", unsynced("data-"), ALL),
        mutant(
            "no copies in the doublewrite files",
            Alteration { unwritten: Some(("doublewrite-", 4096)), ..none() },
            TORN,
        ),
        mutant("the doublewrite files are not synced", unsynced("doublewrite-"), TORN),
        Mutant {
            // Names change when the redo grows; it matters once a new file is used.
            shape: Shape { batches: 200, live: GROWING, ..SHAPE },
            ..mutant("names are not synced", Alteration { no_sync_dir: true, ..none() }, ALL)
        },
        Mutant {
            settings: &[("doublewrite", "OFF")],
            ..mutant("doublewrite is off on a disk that tears", none(), TORN)
        },
        Mutant {
            settings: &[("flush_log_at_trx_commit", "0")],
            ..mutant("a commit waits for nothing", none(), ALL)
        },
        Mutant {
            settings: &[("flush_log_at_trx_commit", "2")],
            ..mutant("a commit waits for a write only", none(), ALL)
        },
        Mutant {
            settings: &[("flush_method", "O_DIRECT"), ("trust_device_cache", "ON")],
            ..mutant("O_DIRECT that trusts the device", none(), TORN)
        },
        Mutant {
            settings: &[("flush_method", "O_DIRECT_NO_FSYNC"), ("trust_device_cache", "ON")],
            ..mutant("O_DIRECT_NO_FSYNC that trusts the device", none(), ALL)
        },
        Mutant {
            settings: &[("flush_method", "ALL_O_DIRECT"), ("trust_device_cache", "ON")],
            ..mutant("ALL_O_DIRECT that trusts the device", none(), ALL)
        },
    ]
}

/// Sweeps a run that lacks the safeguard from the moment when the engine was made and open; what
/// recovers it lacks nothing.
fn swept(mutant: &Mutant, may_be_damaged: bool) -> Outcome {
    let how = How::with(mutant.settings);
    let altered = how.clone().altered(mutant.alteration.clone());
    let missing = || mutant.alteration.switch.turn(true);
    let recording =
        record_after::<EngineStore>(mutant.seed, &mutant.shape, &altered, missing).unwrap();
    let tears = mutant.tears;
    let mut all = Outcome::default();
    for pass in 0..PASSES {
        let sweep = Sweep {
            tears,
            pass,
            may_be_damaged,
            is_open: true,
            ..Sweep::<EngineStore>::new(&how, &mutant.shape)
        };
        let outcome = sweep.run(&recording, IMAGES);
        all.images += outcome.images;
        all.damaged += outcome.damaged;
        all.violation = outcome.violation;
        if all.violation.is_some() {
            break;
        }
    }
    all
}

/// Sweeps a sound run whose recoveries, and what follows them, lack the safeguard.
fn swept_in_recovery(mutant: &Mutant) -> Outcome {
    let how = How::with(mutant.settings);
    let recording = record::<EngineStore>(mutant.seed, &mutant.shape, &how).unwrap();
    let altered = how.altered(mutant.alteration.clone());
    mutant.alteration.switch.turn(true);
    let (tears, nested_every) = (mutant.tears, 1);
    let sweep = Sweep {
        tears,
        nested_every,
        is_open: true,
        ..Sweep::<EngineStore>::new(&altered, &mutant.shape)
    };
    sweep.run(&recording, 2_000)
}

fn all_are_found<'m>(
    mutants: impl IntoIterator<Item = &'m Mutant>,
    swept: impl Fn(&Mutant) -> Outcome,
) {
    let mut missed = Vec::new();
    for mutant in mutants {
        let outcome = swept(mutant);
        match outcome.violation {
            Some(found) => {
                let (name, images) = (mutant.name, outcome.images);
                eprintln!("{name} | {} | image {images} | {}", found.replay, found.what);
            }
            None => missed.push(format!("{} in {} images", mutant.name, outcome.images)),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
fn every_missing_safeguard_is_found() {
    all_are_found(&mutants(), |mutant| swept(mutant, false));
}

#[test]
fn every_missing_safeguard_of_recovery_is_found() {
    all_are_found(&mutants_of_recovery(), swept_in_recovery);
}

/// An opening that lacks a safeguard after a process which ended so is found: by the crash by which
/// a sweep found it before, else by a sweep. The long form always sweeps.
fn found_after(ending: Ending, known: &str, mutant: &Mutant) {
    let how = How::with(mutant.settings);
    let recording = record::<EngineStore>(mutant.seed, &mutant.shape, &how).unwrap();
    let alteration = &mutant.alteration;
    let altered = how.clone().altered(alteration.clone());
    // Pages are written behind the opening, so there the safeguard is missing from then on.
    let is_behind = alteration.unrepeated == Some("data-");
    alteration.switch.turn(is_behind);
    let sweep = Sweep {
        tears: mutant.tears,
        is_open: true,
        ending: Some(ending),
        opening: if is_behind { None } else { Some(&alteration.switch) },
        ..Sweep::<EngineStore>::new(&altered, &mutant.shape)
    };
    let (seed, crash) = parse(known).unwrap();
    assert_eq!((seed, crash.ending), (mutant.seed, Some(ending)), "{known}");
    let found = quietly(|| sweep.one(&recording, crash, false)).err();
    let whole = Sweep { opening: None, how: &how, ..sweep };
    assert_eq!(whole.one(&recording, crash, false).err(), None, "{known}: nothing is missing");
    match &found {
        Some(what) => eprintln!("{} | {known} | known | {what}", mutant.name),
        None => {
            eprintln!("{}: {known} finds it no longer; the sweep may name another", mutant.name)
        }
    }
    if found.is_none() || is_soak() {
        all_are_found([mutant], |_| sweep.run(&recording, 30_000));
    }
}

#[test]
fn an_opening_that_does_not_write_the_control_slot_is_found() {
    let control = Alteration { unwritten: Some(("redo-control", 0)), ..unsynced("redo-control") };
    let mutant = mutant("opening does not write the control slot", control, ALL);
    found_after(Ending::Killed, "1:266:163592347397563:512:killed", &mutant);
}

#[test]
fn an_opening_that_trusts_cached_frames_is_found() {
    let mutant = mutant("opening trusts cached frames", unrepeated("redo-0"), ALL);
    found_after(Ending::SyncFailed, "1:135:159761899323128:whole:failed", &mutant);
}

#[test]
fn an_opening_that_trusts_cached_copies_of_pages_is_found() {
    let mutant = mutant("opening trusts cached copies of pages", unrepeated("doublewrite-"), TORN);
    found_after(Ending::SyncFailed, "1:658:48780562308601:512:failed", &mutant);
}

#[test]
fn an_opening_that_trusts_cached_pages_is_found() {
    let mutant = Mutant {
        settings: &[("doublewrite", "OFF")],
        ..mutant("opening trusts cached pages", unrepeated("data-"), WHOLE)
    };
    found_after(Ending::SyncFailed, "1:135:0:whole:failed", &mutant);
}

#[test]
fn an_opening_that_does_not_sync_names_is_found() {
    let alteration = Alteration { no_sync_dir: true, ..none() };
    let mutant = Mutant {
        shape: Shape { live: GROWING, ..SHAPE },
        ..mutant("opening does not sync names", alteration, ALL)
    };
    found_after(Ending::Killed, "1:543:0:whole:killed", &mutant);
}

/// Without doublewrite, checksums do not repair a torn page, but they name it. Without them, too,
/// what a torn page holds is taken for data.
#[test]
fn only_checksums_name_a_torn_page() {
    let off = |settings| Mutant { settings, ..mutant("no page checksum", none(), TORN) };
    let with = swept(&off(&[("doublewrite", "OFF")]), true);
    assert!(with.violation.is_none(), "{:?}", with.violation);
    assert!(with.damaged > 0, "no page was torn in {} images", with.images);
    let without = swept(&off(&[("doublewrite", "OFF"), ("checksum_algorithm", "none")]), true);
    let found = without.violation.expect("damage that nothing names is found by the sweep");
    let (replay, what) = (found.replay, found.what);
    eprintln!("no page checksum | {replay} | image {} | {what}", without.images);
}
