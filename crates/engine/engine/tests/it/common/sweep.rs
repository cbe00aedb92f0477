//! The sweep: every image that a crash of a recorded run may leave is opened and judged.
//!
//! An image is right when the store opens on it, finds nothing wrong with itself, holds the state
//! after some number of changes that is not below what was acknowledged, and holds the same after
//! it is opened once more. Of every few images the recovery itself, and what is committed after it,
//! is recorded and crashed in turn. A process may also end without a crash (`restarts`).

use std::ops::{AddAssign, Range};
use std::sync::Arc;

use iostrata_io::disk::{Ending, MemDisk, Tear, TraceDisk};

use crate::common::altered::Switch;
use crate::common::chance::Chance;
use crate::common::is_soak;
use crate::common::model::History;
use crate::common::plan::{Shape, more};
use crate::common::quiet::{Watch, quietly};
use crate::common::record::{Recording, Run};
use crate::common::restarts;
use crate::common::store::{DAMAGE, Store};

const TEARS: [Tear; 3] = [Tear::Whole, Tear::Sectors(512), Tear::Sectors(4096)];

/// Of so many images one is judged after kills, and one after failed syncs; in the long form there
/// are as many of each.
const RESTARTED_SHARE: usize = 3;

/// One crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    pub point: usize,
    pub seed: u64,
    pub tear: Tear,
    /// The process ended so at the point; the power is cut later. None: it is cut there.
    pub ending: Option<Ending>,
}

/// A crash after which something was wrong.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What `IOSTRATA_SWEEP` replays: the recording's seed and the crash.
    pub replay: String,
    pub what: String,
}

/// Goes on for about so many batches on a store that holds the rows of a history, from a seed;
/// gives the history with what was done.
pub type GoOn<S> = fn(&S, &TraceDisk, History, &Shape, u64, usize) -> Result<History, String>;

/// Batches, each awaited.
fn batches<S: Store>(
    store: &S,
    disk: &TraceDisk,
    history: History,
    shape: &Shape,
    seed: u64,
    count: usize,
) -> Result<History, String> {
    let tables = history.state(history.len()).len();
    let mut run = Run::going_on(store, disk, history);
    run.all(&more(seed, shape, tables, count))?;
    Ok(run.history)
}

/// How to sweep.
pub struct Sweep<'a, S: Store> {
    pub how: &'a S::How,
    pub shape: &'a Shape,
    pub tears: &'a [Tear],
    /// Of so many images the recovery is crashed, too.
    pub nested_every: u64,
    /// Only crashes after the store was made and open.
    pub is_open: bool,
    /// Chooses other crashes of the same recording.
    pub pass: u64,
    /// Damage may be found as long as it is named: for engines without protection from torn pages.
    pub may_be_damaged: bool,
    /// How processes end before the power is cut; none of them does without.
    pub ending: Option<Ending>,
    /// On while a store is opened after such an end.
    pub opening: Option<&'a Switch>,
    /// What is done after recoveries.
    pub go_on: GoOn<S>,
    /// The background settles what recoveries leave to it.
    pub settles: bool,
}

/// What a sweep did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Images judged, those within recovery included.
    pub images: usize,
    /// Of them, those whose damage was named.
    pub damaged: usize,
    pub violation: Option<Violation>,
}

/// `count` crashes at these points, in their order.
fn sample(
    at: Range<usize>,
    count: usize,
    tears: &[Tear],
    ending: Option<Ending>,
    chance: &mut Chance,
) -> Vec<Crash> {
    let points = at.len();
    let mut crashes: Vec<Crash> = (0..count)
        .map(|number| {
            // Every point in turn when there are enough, by chance otherwise.
            let point = if count >= points { number % points } else { chance.below(points) };
            let point = at.start + point;
            let seed = match chance.below(4) {
                0 => 0,
                1 => 1,
                _ => chance.next() >> 16,
            };
            Crash { point, seed, tear: *chance.pick(tears), ending }
        })
        .collect();
    crashes.sort_by_key(|crash| crash.point);
    crashes
}

impl<'a, S: Store> Sweep<'a, S> {
    pub fn new(how: &'a S::How, shape: &'a Shape) -> Self {
        Self {
            how,
            shape,
            tears: &TEARS,
            nested_every: 6,
            is_open: false,
            pass: 0,
            may_be_damaged: false,
            ending: None,
            opening: None,
            go_on: batches::<S>,
            settles: false,
        }
    }

    /// Judges about `images` images; ends at the first that is wrong.
    pub fn run(&self, recording: &Recording, images: usize) -> Outcome {
        let watch = Watch::new();
        let mut outcome = Outcome::default();
        let mut chance = Chance::new(recording.seed ^ 0xcafe ^ (self.pass << 32));
        let each = match self.ending {
            None => 1.0 + 2.0 / self.nested_every as f64,
            Some(_) => restarts::IMAGES,
        };
        let count = (images as f64 / each) as usize;
        let from = if self.is_open { recording.opened } else { 0 };
        let at = from..recording.disk.points();
        for crash in sample(at, count, self.tears, self.ending, &mut chance) {
            let replay = text(recording.seed, crash);
            watch.on(replay.clone());
            let is_nested = chance.next().is_multiple_of(self.nested_every);
            match quietly(|| self.one(recording, crash, is_nested)) {
                Ok(judged) => outcome.images += judged,
                Err(what) if self.may_be_damaged && what.contains(DAMAGE) => {
                    outcome.images += 1;
                    outcome.damaged += 1;
                }
                Err(what) => {
                    outcome.images += 1;
                    outcome.violation = Some(Violation { replay, what });
                    break;
                }
            }
        }
        outcome
    }

    /// Judges one crash; the number of images that were judged for it.
    pub fn one(&self, recording: &Recording, crash: Crash, nested: bool) -> Result<usize, String> {
        if let Some(ending) = crash.ending {
            return self.restarts(recording, crash, ending);
        }
        let history = &recording.history;
        let needed = history.needed(&recording.disk.acknowledged(crash.point));
        let image = || recording.disk.image(crash.point, crash.seed, crash.tear);
        let count = self.judge(image(), history, needed, crash.seed & 2 == 0)?;
        if !nested {
            return Ok(1);
        }
        let judged = self.within_recovery(image(), history, count, crash);
        judged.map_err(|what| format!("in a crash of the recovery: {what}")).map(|count| count + 1)
    }

    /// Opens, checks and compares; then once more, after a close or without.
    pub fn judge(
        &self,
        image: MemDisk,
        history: &History,
        needed: usize,
        is_closed: bool,
    ) -> Result<usize, String> {
        let opened = || S::open(Arc::new(image.clone()), self.how);
        let (store, count) = self.right(opened, history, needed, "open")?;
        self.settle(&store)?;
        if is_closed {
            store.close().map_err(|error| format!("close: {error}"))?;
        } else {
            drop(store);
        }
        let (store, again) = self.right(opened, history, needed, "second open")?;
        self.settle(&store)?;
        drop(store);
        if history.digest(again) != history.digest(count) {
            return Err(format!("opened twice: {count} changes, then {again}"));
        }
        Ok(count)
    }

    fn settle(&self, store: &S) -> Result<(), String> {
        let settled = if self.settles { store.settle() } else { Ok(()) };
        settled.map_err(|error| format!("behind the opening: {error}"))
    }

    /// A store that opens and holds what it must, and how many changes that is.
    pub fn right(
        &self,
        open: impl FnOnce() -> Result<S, String>,
        history: &History,
        needed: usize,
        doing: &str,
    ) -> Result<(S, usize), String> {
        let failed = |error: String| format!("{doing}: {error}");
        let store = open().map_err(failed)?;
        store.check().map_err(|error| format!("{doing}, check: {error}"))?;
        let found = store.digest().map_err(|error| format!("{doing}, scan: {error}"))?;
        let contents = || store.contents().unwrap_or_default();
        let count = history.judge(needed, found, contents).map_err(failed)?;
        Ok((store, count))
    }

    /// Records the recovery of an image and a few commits after it, and crashes that.
    fn within_recovery(
        &self,
        image: MemDisk,
        history: &History,
        count: usize,
        crash: Crash,
    ) -> Result<usize, String> {
        let mut chance = Chance::new(crash.seed ^ (crash.point as u64).rotate_left(32));
        let base = history.state(count);
        let disk = TraceDisk::new(image);
        let store = S::open(Arc::new(disk.clone()), self.how)?;
        let recovered = disk.points();
        let seed = chance.next();
        let again = (self.go_on)(&store, &disk, History::new(base), self.shape, seed, 2)?;
        drop(store);
        let all = disk.points();
        let mut points = [chance.below(recovered), chance.within(recovered - 1, all - 1)];
        points.sort_unstable();
        for point in points {
            let seed = *chance.pick(&[0, 1, crash.seed.wrapping_add(7), crash.seed ^ 0x55aa]);
            let tear = *chance.pick(self.tears);
            let needed = again.needed(&disk.acknowledged(point));
            let image = disk.image(point, seed, tear);
            self.judge(image, &again, needed, seed & 2 == 0).map_err(|what| {
                let crash = Crash { point, seed, tear, ending: None };
                format!("{crash:?}: {what}")
            })?;
        }
        Ok(2)
    }
}

/// A crash as `IOSTRATA_SWEEP` takes it.
pub fn text(recording: u64, crash: Crash) -> String {
    let tear = match crash.tear {
        Tear::Whole => "whole".to_owned(),
        Tear::Sectors(bytes) => bytes.to_string(),
    };
    let ending = match crash.ending {
        None => "",
        Some(Ending::Killed) => ":killed",
        Some(Ending::SyncFailed) => ":failed",
    };
    format!("{recording}:{}:{}:{tear}{ending}", crash.point, crash.seed)
}

/// The recording's seed and the crash that `IOSTRATA_SWEEP` names.
pub fn parse(text: &str) -> Option<(u64, Crash)> {
    let mut parts = text.split(':');
    let recording = parts.next()?.parse().ok()?;
    let point = parts.next()?.parse().ok()?;
    let seed = parts.next()?.parse().ok()?;
    let tear = match parts.next()? {
        "whole" => Tear::Whole,
        bytes => Tear::Sectors(bytes.parse().ok()?),
    };
    let ending = match parts.next() {
        None => None,
        Some("killed") => Some(Ending::Killed),
        Some("failed") => Some(Ending::SyncFailed),
        Some(_) => return None,
    };
    Some((recording, Crash { point, seed, tear, ending }))
}

/// Sweeps recordings of these seeds, `images` in all; panics with what replays the first violation.
pub fn prove<S: Store>(
    test: &str,
    sweep: &Sweep<'_, S>,
    seeds: &[u64],
    images: usize,
    record: impl Fn(u64) -> Result<Recording, String>,
) {
    let watch = Watch::new();
    let recorded = |seed| {
        watch.on(format!("{test}: recording {seed}"));
        let recording = quietly(|| record(seed));
        watch.rest();
        recording.unwrap_or_else(|error| panic!("{test}: recording {seed} failed: {error}"))
    };
    if let Some(asked) = std::env::var_os("IOSTRATA_SWEEP") {
        let asked = asked.to_string_lossy();
        let Some((seed, crash)) = parse(&asked) else {
            panic!("IOSTRATA_SWEEP is {asked:?}: use recording:point:seed:tear[:killed|:failed]");
        };
        let found = sweep.one(&recorded(seed), crash, true);
        eprintln!("{test}: {asked}: {found:?}");
        assert!(found.is_ok(), "{found:?}");
        return;
    }
    let (mut total, mut restarted, mut points) = (0, 0, 0);
    for seed in seeds {
        let recording = recorded(*seed);
        points += recording.disk.points();
        for ending in [None, Some(Ending::Killed), Some(Ending::SyncFailed)] {
            let share = if ending.is_none() || is_soak() { 1 } else { RESTARTED_SHARE };
            let sweep = Sweep { ending, ..*sweep };
            let outcome = sweep.run(&recording, images / seeds.len() / share);
            if ending.is_some() { &mut restarted } else { &mut total }.add_assign(outcome.images);
            if let Some(Violation { replay, what }) = outcome.violation {
                panic!(
                    "{what}\nreplay: IOSTRATA_SWEEP={replay} cargo test -p iostrata-engine \
                     --test it {test} -- --exact"
                );
            }
        }
    }
    let runs = seeds.len();
    eprintln!(
        "{test}: {total} images, {restarted} after restarts, of {points} points, {runs} runs"
    );
}
