//! From the options of one job section to its workloads.
//!
//! Invariant: a job that comes out can be run; whatever cannot be is refused with the line that
//! asks for it.

use std::path::PathBuf;
use std::time::Duration;

use crate::Words;
use crate::variation::{Sharing, Variation};
use crate::{
    Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Preparation, SpecError, SyncWrites,
};

use super::environment::Environment;
use super::error::{FioError, FioWarning, Why};
use super::lines::{Assignment, Section};
use super::places::{self, Amount, Names};
use super::plan::{FioJob, FioStream};
use super::requests::{self, RequestOrder};
use super::settings::{Settings, job_refusal, refusal};
use super::times::{self, Times};
use super::{reports, value};

const CLONES_MAX: u32 = 4096;
/// fio's seed where a file says nothing.
const SEED: u64 = 0x89;
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// One job section on its way to workloads.
pub(super) struct Builder<'a> {
    pub settings: &'a Settings,
    pub section: &'a Section,
    pub environment: &'a dyn Environment,
    /// Workloads before this one: tells their seeds apart.
    pub streams_before: u64,
    pub group: u32,
    pub warnings: Vec<FioWarning>,
}

impl Builder<'_> {
    /// The job; `None` when it has no files, which is refused. Whatever else is refused is found
    /// in the settings.
    pub(super) fn build(&mut self) -> Option<FioJob> {
        let settings = self.settings;
        let name = settings.get("name").map_or(&self.section.name, |one| &one.value).clone();
        let clones = settings.value("numjobs", |text| match value::count(text)? {
            0 => Err(Why::new("out of range; use 1 to 4096")),
            clones if clones > CLONES_MAX => Err(Why::new("out of range; use 1 to 4096")),
            clones => Ok(clones),
        });
        let clones = clones.unwrap_or(1);
        let names = places::names(settings, &name, clones)?;
        let times = times::times(settings);
        let spec = self.spec(&names, times);
        let group_reporting = settings.switch("group_reporting").unwrap_or(false);
        let base = settings.base();
        let increment = settings.value("offset_increment", |text| value::size(text, base));
        let increment = increment.unwrap_or(0);
        let apart = !group_reporting || increment > 0 || times.delay.0 < times.delay.1;
        let streams = if apart {
            (0..clones)
                .map(|clone| {
                    self.one_clone(&name, &names, &spec, (clone, clones), times, increment)
                })
                .collect()
        } else {
            vec![self.all_clones(&name, names, spec, clones)]
        };
        for stream in &streams {
            if let Err(error) = stream.spec.check() {
                settings.refuse_as(self.refusal_of(&error));
                break;
            }
        }
        Some(FioJob {
            description: settings.get("description").map(|one| one.value.clone()),
            group: self.group,
            group_reporting,
            unlink: settings.switch("unlink").unwrap_or(false),
            percentiles: reports::percentiles(settings),
            logs: reports::logs(settings),
            options: shown(&self.section.assignments),
            streams,
            name,
        })
    }

    /// The workload of one clone, its files and bytes, but for what tells clones apart.
    fn spec(&mut self, names: &Names, times: Times) -> IoSpec {
        let settings = self.settings;
        let paths = &names.by_clone[0];
        let api = api(settings);
        let RequestOrder { mix, random, step } = requests::direction(settings);
        let (blocks, block_bytes) = requests::blocks(settings, mix);
        let mut spec = IoSpec::new(paths.first().cloned().unwrap_or_default());
        (spec.api, spec.mix, spec.block_bytes) = (api, mix, block_bytes);
        spec.access = requests::access(settings, random);
        spec.files = paths.len() as u32;
        spec.variation = Variation {
            step,
            blocks,
            file_order: requests::file_order(settings, spec.files),
            pause: times::pause(settings),
            start_delay: times.delay.0,
            ramp_time: times.ramp,
            ends_window: self.settings.switch("exitall").unwrap_or(false),
            drop_cache: api != IoApi::Null && self.settings.switch("invalidate").unwrap_or(true),
            ..Variation::default()
        };
        spec.memory = requests::memory(settings);
        self.set_depth(&mut spec);
        self.set_durability(&mut spec);
        self.set_schedule(&mut spec);
        self.set_amount(&mut spec, paths, times);
        spec.processes = !self.settings.switch("thread").unwrap_or(false);
        spec.seed = self.seed();
        spec.preparation = self.preparation(&spec);
        spec
    }

    fn warn(&mut self, assignment: &Assignment, text: impl Into<String>) {
        self.warnings.push(warning(assignment, text));
    }

    fn set_depth(&mut self, spec: &mut IoSpec) {
        let settings = self.settings;
        if let Some(assignment) = settings.later("direct", "buffered") {
            match value::switch(&assignment.value) {
                Ok(given) => spec.direct = given == (assignment.entry.name == "direct"),
                Err(why) => settings.refuse(assignment, why),
            }
        }
        if spec.api == IoApi::IoUring && settings.switch("hipri").unwrap_or(false) {
            spec.polled = true;
        }
        if spec.api == IoApi::Sync {
            return;
        }
        spec.depth = settings.value("iodepth", value::count).unwrap_or(1);
        let batch = settings.value("iodepth_batch_complete_min", value::count).unwrap_or(1);
        let low = settings.value("iodepth_low", value::count).filter(|low| *low > 0);
        if let (Some(low), Some(assignment)) = (low, settings.peek("iodepth_low"))
            && low > spec.depth
        {
            settings.refuse(assignment, Why::new(format!("the depth is {}; use less", spec.depth)));
            return;
        }
        let drained = low.map_or(1, |low| spec.depth - low);
        spec.variation.reap_min = batch.max(drained).max(1);
    }

    fn set_durability(&mut self, spec: &mut IoSpec) {
        if !spec.mix.writes() {
            return;
        }
        let settings = self.settings;
        let every = |name| settings.value(name, value::count).filter(|every| *every > 0);
        let (fsync, fdatasync) = (every("fsync"), every("fdatasync"));
        if let (Some(_), Some(_), Some(later)) =
            (fsync, fdatasync, settings.later("fsync", "fdatasync"))
        {
            settings.refuse(later, Why::new("fsync and fdatasync are both given; use one of them"));
        }
        let (method, every) = match fsync {
            Some(_) => (FlushMethod::Fsync, fsync),
            None => (FlushMethod::Fdatasync, fdatasync),
        };
        let (scope, count) = (FlushScope::File, FlushCount::Writes);
        spec.flush = every.map(|every| Flush { method, every, scope, count });
        let sync = settings.value("sync", |text| match text {
            "0" | "none" => Ok(SyncWrites::None),
            "" | "1" | "sync" => Ok(SyncWrites::Sync),
            "dsync" => Ok(SyncWrites::Dsync),
            _ => Err(Why::new("use none, sync or dsync")),
        });
        spec.sync = sync.unwrap_or_default();
        spec.variation.end_flush = settings.switch("end_fsync").unwrap_or(false);
    }

    fn set_schedule(&mut self, spec: &mut IoSpec) {
        let schedule = times::schedule(self.settings, spec.mix, mean_bytes(spec));
        if schedule.mix != spec.mix
            && let crate::Mix::Both { read_pct } = schedule.mix
        {
            let asked = self.settings.peek("rate").or(self.settings.peek("rate_iops")).cloned();
            if let Some(assignment) = asked {
                let text = format!("one schedule for both, with {read_pct} reads in a hundred");
                self.warn(&assignment, text);
            }
        }
        (spec.pacing, spec.mix) = (schedule.pacing, schedule.mix);
    }

    fn set_amount(&mut self, spec: &mut IoSpec, paths: &[PathBuf], times: Times) {
        let job = (self.section.name.as_str(), &self.section.origin);
        let [read, write] = mean_bytes(spec);
        let mean = if spec.mix.reads() { read } else { write };
        let block = (spec.block_bytes, mean);
        spec.runtime = Some(times.runtime.unwrap_or(times::LONGEST));
        let amount = places::amount(self.settings, job, paths, block, self.environment);
        let Some(Amount { offset_bytes, file_bytes, io_bytes }) = amount else { return };
        spec.variation.offset_bytes = offset_bytes;
        spec.size_bytes = file_bytes.saturating_mul(paths.len() as u64);
        if !times.time_based {
            let loops = self.settings.value("loops", value::count).unwrap_or(1);
            spec.variation.io_bytes_max = Some(io_bytes.saturating_mul(u64::from(loops.max(1))));
        }
    }

    fn seed(&self) -> u64 {
        let number = |text: &str| value::size(text, value::Base::FIO);
        let given = self.settings.value("randseed", number);
        let repeats = self.settings.switch("randrepeat").unwrap_or(true);
        let seed = match given {
            Some(seed) => seed,
            None if repeats => SEED,
            None => self.environment.fresh_seed(),
        };
        seed.wrapping_add(self.streams_before.wrapping_mul(SEED_STEP))
    }

    /// What fio would find in a file at the start: nothing written yet where a job only writes.
    fn preparation(&self, spec: &IoSpec) -> Preparation {
        if spec.mix.reads() || self.settings.switch("overwrite").unwrap_or(false) {
            return Preparation::Written;
        }
        if self.settings.switch("create_on_open").unwrap_or(false) {
            return Preparation::Empty;
        }
        let how = self.settings.value("fallocate", |text| match text {
            "none" | "0" | "truncate" => Ok(Preparation::Empty),
            "native" | "posix" | "keep" | "1" => Ok(Preparation::Fallocated),
            _ => Err(Why::new("use none, native, posix, keep or truncate")),
        });
        how.unwrap_or(Preparation::Fallocated)
    }

    fn one_clone(
        &self,
        name: &str,
        names: &Names,
        spec: &IoSpec,
        (clone, clones): (u32, u32),
        times: Times,
        increment: u64,
    ) -> FioStream {
        let mut spec = spec.clone();
        spec.variation.sharing = Sharing::Whole;
        let further = increment.saturating_mul(u64::from(clone));
        spec.variation.offset_bytes = spec.variation.offset_bytes.saturating_add(further);
        spec.variation.start_delay = drawn_delay(times.delay, spec.seed, clone);
        spec.seed = spec.seed.wrapping_add(u64::from(clone).wrapping_mul(SEED_STEP));
        let paths = names.by_clone.get(clone as usize).unwrap_or(&names.by_clone[0]).clone();
        spec.path = paths.first().cloned().unwrap_or_default();
        let name = if clones == 1 { name.to_owned() } else { format!("{name}.{clone}") };
        FioStream { name, first_clone: clone, spec, paths }
    }

    fn all_clones(&self, name: &str, names: Names, mut spec: IoSpec, clones: u32) -> FioStream {
        spec.jobs = clones;
        spec.variation.sharing = if names.shared { Sharing::Whole } else { Sharing::Own };
        let paths = names.by_clone.into_iter().flatten().collect();
        FioStream { name: name.to_owned(), first_clone: 0, spec, paths }
    }

    fn refuse(&self, why: impl Into<String>) -> FioError {
        job_refusal(&self.section.name, &self.section.origin, why)
    }

    /// A refusal of the spec, at the line that asked for it.
    fn refusal_of(&self, error: &SpecError) -> FioError {
        let why = format!("{}; {}", error.why, error.fix).replace("--", "");
        let words = match error.option {
            "bs" => ["bssplit", "bsrange", "bs"].as_slice(),
            "size" => &["filesize", "size", "nrfiles", "bs"],
            "rate-iops" => &["rate_iops", "rate"],
            "random-distribution" => &["random_distribution"],
            "iodepth_batch_complete_min" => &["iodepth_batch_complete_min", "iodepth_low"],
            "hipri" | "iodepth" | "runtime" | "numjobs" | "nrfiles" | "io_size" | "rw" => {
                std::slice::from_ref(&error.option)
            }
            _ => &[],
        };
        match words.iter().find_map(|word| self.settings.peek(word)) {
            Some(assignment) => refusal(assignment, Why(why)),
            None => self.refuse(format!("{} {}: {why}", error.option, error.found)),
        }
    }
}

fn mean_bytes(spec: &IoSpec) -> [f64; 2] {
    match &spec.variation.blocks {
        crate::Blocks::Fixed => [f64::from(spec.block_bytes); 2],
        crate::Blocks::ByKind { read, write } => [read.mean(), write.mean()],
    }
}

fn api(settings: &Settings) -> IoApi {
    let api = settings.value("ioengine", |text| match text {
        "posixaio" | "mmap" | "splice" | "sg" | "io_uring_cmd" => Err(Why::new(
            "this way to the kernel is not measured here; use sync, libaio or io_uring",
        )),
        text => IoApi::of(text).ok_or_else(|| {
            Why::new("there is no such engine here; use sync, libaio, io_uring or null")
        }),
    });
    api.unwrap_or(IoApi::Sync)
}

/// A delay between two, the same each time for the same clone and seed.
fn drawn_delay((low, high): (Duration, Duration), seed: u64, clone: u32) -> Duration {
    if low == high {
        return low;
    }
    let mixed = (seed ^ (u64::from(clone) + 1)).wrapping_mul(SEED_STEP);
    let share = (mixed ^ (mixed >> 29)).wrapping_mul(SEED_STEP) >> 11;
    low + (high - low).mul_f64(share as f64 / 9_007_199_254_740_992.0)
}

/// A warning of an option.
pub(super) fn warning(assignment: &Assignment, text: impl Into<String>) -> FioWarning {
    FioWarning::at(&assignment.origin, assignment.shown(), text.into())
}

/// Options as they were written.
pub(super) fn shown<'a>(
    assignments: impl IntoIterator<Item = &'a Assignment>,
) -> std::collections::BTreeMap<String, String> {
    assignments.into_iter().map(|one| (one.entry.name.to_owned(), one.value.clone())).collect()
}
