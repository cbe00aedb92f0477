//! From the options of one job section to its workloads.
//!
//! Invariant: a resulting job can be run; whatever cannot be is refused with the line that requests
//! it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::variation::{
    BlockShare, BlockSizes, Blocks, FileCall, FileOrder, Replay, RequestLog, Sharing, Step,
    Variation,
};
use crate::{Access, IoApi, IoSpec, Mix, Preparation, SpecError, SyncWrites};

use super::environment::Environment;
use super::error::{FioError, FioWarning, Why};
use super::iolog::{IoLog, LoggedOp};
use super::lines::{Assignment, Section};
use super::places::{self, Amount, Amounts, Names};
use super::plan::{FioJob, FioStream};
use super::requests::{self, RequestOrder};
use super::settings::{Settings, job_refusal, refusal};
use super::times::{self, Times};
use super::{durability, engines, reports, value, verify};

const CLONES_MAX: u32 = 4096;
/// fio's seed where a file sets none.
const SEED: u64 = 0x89;
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// One job section on its way to workloads.
pub(super) struct Builder<'a> {
    pub settings: &'a Settings,
    pub section: &'a Section,
    pub environment: &'a dyn Environment,
    pub plans_only: bool,
    /// Workloads before this one, so that their seeds differ.
    pub streams_before: u64,
    pub group: u32,
    pub warnings: Vec<FioWarning>,
}

impl Builder<'_> {
    /// The job; `None` when it has no files, which is refused. Whatever else is refused is found
    /// in the settings.
    pub(super) fn build(&mut self) -> Option<FioJob> {
        let settings = self.settings;
        let name = self.name();
        let clones = settings.value("numjobs", |text| match value::count(text)? {
            0 => Err(Why::new("out of range; use 1 to 4096")),
            clones if clones > CLONES_MAX => Err(Why::new("out of range; use 1 to 4096")),
            clones => Ok(clones),
        });
        let clones = clones.unwrap_or(1);
        let log = self.log();
        if log.is_none() && settings.peek("read_iolog").is_some() {
            return None;
        }
        let names = places::names(
            settings,
            &name,
            clones,
            log.as_ref(),
            (self.environment, self.plans_only),
        )?;
        self.check_devices(&names)?;
        let times = times::times(settings);
        let mut spec = self.spec(&names, times, log.is_some());
        if let Some(log) = &log {
            self.set_replay(&mut spec, log);
        }
        let counted_bytes = self.set_calls(&mut spec);
        let group_reporting = settings.switch("group_reporting").unwrap_or(false);
        let increments = settings.get("offset_increment").is_some_and(|one| one.value != "0");
        let splits = !spec.variation.cpus.is_empty() && self.splits_cpus();
        let apart = !group_reporting || increments || splits || times.delay.0 < times.delay.1;
        let mut streams = if apart {
            (0..clones)
                .map(|clone| self.one_clone(&name, &names, &spec, (clone, clones), times))
                .collect()
        } else {
            vec![self.all_clones(&name, names, spec, clones)]
        };
        if log.is_none() {
            self.log_requests(&mut streams);
        }
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
            create_only: settings.switch("create_only").unwrap_or(false),
            counted_bytes,
            unified: reports::unified(settings),
            latency_target: times::latency_target(settings),
            percentiles: reports::percentiles(settings),
            percentiles_of: reports::percentiles_of(settings),
            logs: reports::logs(settings, &name),
            options: shown(&self.section.assignments),
            streams,
            name,
        })
    }

    /// What the job is called. As in fio, a name in a global section names none.
    fn name(&self) -> String {
        let own = self.section.assignments.iter().rfind(|one| one.entry.name == "name");
        self.settings.get("name");
        let name = own.map_or(&self.section.name, |one| &one.value).clone();
        if let (true, Some(own)) = (name.is_empty(), own) {
            self.settings.refuse(own, Why::new("a job has a name; write name=NAME"));
        }
        name
    }

    /// Logs the requests of all streams where that is requested. As in fio, what is replayed is not
    /// logged again.
    fn log_requests(&self, streams: &mut [FioStream]) {
        let Some(path) = self.settings.get("write_iolog").map(|one| &one.value) else { return };
        for stream in streams {
            let files = stream.paths.clone();
            stream.spec.variation.request_log = Some(RequestLog { path: path.into(), files });
        }
    }

    /// Whether each clone has a processor of its own.
    fn splits_cpus(&self) -> bool {
        let policy = self.settings.value("cpus_allowed_policy", |text| match text {
            "shared" => Ok(false),
            "split" => Ok(true),
            _ => Err(Why::new("use shared or split")),
        });
        policy.unwrap_or(false)
    }

    /// Refuses devices that are not there, where jobs are to run; a file in their place would be in
    /// memory.
    fn check_devices(&mut self, names: &Names) -> Option<()> {
        let touches_none = |one: &Assignment| one.value == "null";
        if self.settings.peek("ioengine").is_some_and(touches_none) {
            return Some(());
        }
        self.warn_of_sizes(names);
        let mut paths = names.by_clone.iter().flatten();
        let Some(missing) = paths.find(|path| self.environment.lacks_device(path)) else {
            return Some(());
        };
        let path = missing.display();
        let asked = self.settings.peek("filename").or(self.settings.peek("directory"));
        if self.plans_only {
            let text = format!("{path} is not there; planned as a device of 1T, refused in a run");
            asked.cloned().into_iter().for_each(|asked| self.warn(&asked, text.clone()));
            return Some(());
        }
        let mut error = self.refuse(format!("{path}: no such device"));
        if let Some(asked) = asked {
            let why = format!("no such device: {path}");
            let is_alone = asked.value == path.to_string();
            let why = if is_alone { "no such device".to_owned() } else { why };
            error = refusal(asked, Why(why));
        }
        self.settings.refuse_as(error);
        None
    }

    /// Warns of shares of a file that is not there, and of one without a size, where nothing is
    /// run; and of files that were to have different sizes.
    fn warn_of_sizes(&mut self, names: &Names) {
        let files = self.settings.peek("filesize").filter(|one| one.value.contains(['-', ':']));
        if let Some(files) = files.cloned() {
            self.warn(&files, "files of one job have one size: the middle of the two");
        }
        let is_share = |one: &&Assignment| one.value.ends_with('%');
        let mut shares = ["size", "offset", "io_size", "offset_increment"].into_iter();
        let asked = shares.find_map(|name| self.settings.peek(name).filter(is_share)).cloned();
        let is_missing = |path: &&PathBuf| {
            matches!(self.environment.bytes_of(path), Ok(None))
                && !self.environment.lacks_device(path)
        };
        let missing = names.by_clone.iter().flatten().find(is_missing);
        if let (true, Some(asked), Some(path)) = (self.plans_only, asked, missing) {
            let path = path.display();
            let text = format!("{path} is not there; planned as a file of 1T, refused in a run");
            self.warn(&asked, text);
        }
        let is_said = ["size", "filesize"].iter().any(|name| self.settings.peek(name).is_some());
        if let (true, false, Some(path)) = (self.plans_only, is_said, missing) {
            let path = path.display();
            let text =
                format!("{path} is not there and has no size=; planned as 1T, refused in a run");
            let what = job_refusal(&self.section.name, &self.section.origin, "").what;
            self.warnings.push(FioWarning::at(&self.section.origin, what, text));
        }
    }

    /// The workload of one clone, its files and bytes, without what differs between clones.
    fn spec(&mut self, names: &Names, times: Times, replays: bool) -> IoSpec {
        let settings = self.settings;
        let paths = &names.by_clone[0];
        let (api, call) = engines::way(settings);
        let RequestOrder { mix, mut random, step } = requests::direction(settings);
        let (blocks, block_bytes) = requests::blocks(settings, mix);
        let (mut random_pct, mut align_bytes) = (None, None);
        if random {
            let in_order;
            (random_pct, in_order) = requests::random_share(settings, mix);
            random = !in_order;
        }
        if random {
            align_bytes = requests::align(settings, mix, &blocks, block_bytes);
        }
        let mut spec = IoSpec::new(paths.first().cloned().unwrap_or_default());
        (spec.api, spec.mix, spec.block_bytes) = (api, mix, block_bytes);
        let distribution;
        (spec.access, distribution) = requests::access(settings, random);
        spec.files = paths.len() as u32;
        spec.variation = Variation {
            cpus: self.cpus(),
            step: if random || !random_is_counted(step) { step } else { Step::None },
            strides: requests::strides(settings, spec.files),
            random_pct,
            align_bytes,
            call,
            bs_unaligned: settings.switch("bs_unaligned").unwrap_or(false),
            distribution,
            blocks,
            file_order: requests::file_order(settings, spec.files),
            pause: times::pause(settings),
            flow: times::flow(settings),
            minimum_rates: times::minimum_rates(settings, mix),
            start_delay: times.delay.0,
            ramp_time: times.ramp,
            ends_window: self.settings.switch("exitall").unwrap_or(false),
            pre_read: settings.switch("pre_read").unwrap_or(false),
            serialize_overlap: settings.switch("serialize_overlap").unwrap_or(false),
            steady: times::steady(settings, self.group),
            drop_cache: api != IoApi::Null && self.settings.switch("invalidate").unwrap_or(true),
            ..Variation::default()
        };
        spec.memory = requests::memory(settings);
        self.set_depth(&mut spec);
        let in_order = spec.access == Access::Sequential;
        let has_passes = spec.access == Access::Coverage || (in_order && spec.files == 1);
        // As in fio, a pass that begins again finds nothing in the cache.
        spec.variation.drops_each_pass =
            spec.variation.drop_cache && times.time_based && !spec.direct && has_passes;
        spec.variation.directions_apart = in_order && matches!(mix, Mix::Both { .. });
        durability::set(settings, &mut spec);
        spec.pacing = times::schedule(settings, spec.mix, mean_bytes(&spec));
        spec.runtime = Some(times.runtime.unwrap_or(times::LONGEST));
        if !replays {
            self.set_amount(&mut spec, 0, paths, times);
        }
        if self.plans_only {
            self.plan_larger(&mut spec);
        }
        spec.variation.appends = self.appends(&spec);
        requests::set_absolute_zones(settings, &mut spec);
        self.fit_blocks(&mut spec);
        verify::set(settings, &mut spec, times);
        spec.processes = !self.settings.switch("thread").unwrap_or(false);
        spec.seed = self.seed();
        spec.preparation = self.preparation(&spec);
        spec
    }

    /// Whether requests begin where the files end; there is nothing to read.
    fn appends(&self, spec: &IoSpec) -> bool {
        let appends = self.settings.switch("file_append").unwrap_or(false);
        if let (true, true, Some(asked)) =
            (appends, spec.mix.reads(), self.settings.peek("file_append"))
        {
            let why = "behind the end of a file there is nothing to read; leave it out";
            self.settings.refuse(asked, Why::new(why));
        }
        appends
    }

    fn warn(&mut self, assignment: &Assignment, text: impl Into<String>) {
        self.warnings.push(warning(assignment, text));
    }

    /// The log that the job replays.
    fn log(&self) -> Option<IoLog> {
        self.settings.value("read_iolog", |path| {
            let unread = |why| Why::new(format!("the log cannot be read: {why}"));
            let bytes = self.environment.read(Path::new(path)).map_err(unread)?;
            let text = String::from_utf8(bytes).map_err(|_| Why::new("it is no text"))?;
            let log = IoLog::parse(&text).map_err(Why::new)?;
            match log.has(&[LoggedOp::Trim]) && log.has(&[LoggedOp::Read, LoggedOp::Write]) {
                true => Err(Why::new("it trims and reads or writes; split it into two logs")),
                false => Ok(log),
            }
        })
    }

    /// Takes the requests from a log.
    fn set_replay(&mut self, spec: &mut IoSpec, log: &IoLog) {
        let settings = self.settings;
        // As in fio, the log defines where and how much.
        for said_by_log in ["size", "filesize", "io_size", "bs", "filename", "rw"] {
            settings.get(said_by_log);
        }
        let (reads, writes) = (log.has(&[LoggedOp::Read]), log.has(&[LoggedOp::Write]));
        spec.mix = match (reads, writes) {
            (true, true) => Mix::Both { read_pct: 50 },
            (true, false) => Mix::Read,
            (false, true) => Mix::Write,
            (false, false) => Mix::Trim,
        };
        let mut lengths: Vec<u32> = log.requests.iter().map(|one| one.len).collect();
        lengths.retain(|len| *len > 0);
        lengths.sort_unstable();
        lengths.dedup();
        spec.block_bytes = lengths.first().copied().unwrap_or(4096);
        let shares = lengths.iter().map(|bytes| BlockShare { bytes: *bytes, weight: 1 });
        let sizes = BlockSizes::Shares(shares.collect());
        let block = u64::from(spec.block_bytes);
        let file_bytes = log.end_bytes().div_ceil(block) * block;
        spec.size_bytes = file_bytes.saturating_mul(u64::from(spec.files));
        let loops = settings.value("loops", value::count).unwrap_or(1).max(1);
        spec.flush = None;
        spec.variation = Variation {
            sharing: spec.variation.sharing,
            start_delay: spec.variation.start_delay,
            ramp_time: spec.variation.ramp_time,
            ends_window: spec.variation.ends_window,
            drop_cache: spec.variation.drop_cache,
            reap_min: spec.variation.reap_min,
            blocks: Blocks::ByKind { read: sizes.clone(), write: sizes },
            io_bytes_max: Some(log.bytes().saturating_mul(u64::from(loops)).max(1)),
            replay: Some(Replay {
                log: settings
                    .peek("read_iolog")
                    .map_or_else(PathBuf::new, |one| one.value.clone().into()),
                is_redirected: settings.peek("replay_redirect").is_some(),
                stalls: !settings.switch("replay_no_stall").unwrap_or(false),
                loops,
                flushes: log.has(&[LoggedOp::Fsync, LoggedOp::Fdatasync]),
                is_fdatasync: !log.has(&[LoggedOp::Fsync]),
            }),
            ..Variation::default()
        };
        spec.preparation = self.preparation(spec);
    }

    /// Makes each request one call for a file as a whole, where the engine requires that; returns
    /// the bytes that fio counts as one.
    fn set_calls(&self, spec: &mut IoSpec) -> Option<u32> {
        spec.variation.call.filter(|call| call.is_by_name())?;
        if let (true, Some(asked)) =
            (!matches!(spec.mix, Mix::Read | Mix::Write), self.settings.peek("rw"))
        {
            let why = "files are neither read nor written; use read or write, as which the calls \
                       are counted";
            self.settings.refuse(asked, Why::new(why));
        }
        let counted_bytes = spec.block_bytes;
        let file_bytes = spec.file_bytes().min(u64::from(crate::BLOCK_BYTES_MAX));
        spec.block_bytes = file_bytes as u32;
        spec.size_bytes = file_bytes * u64::from(spec.files);
        (spec.access, spec.direct) = (Access::Sequential, false);
        (spec.flush, spec.sync) = (None, SyncWrites::None);
        spec.variation = Variation {
            call: spec.variation.call,
            sharing: spec.variation.sharing,
            file_order: FileOrder::RoundRobin(1),
            start_delay: spec.variation.start_delay,
            ramp_time: spec.variation.ramp_time,
            pause: spec.variation.pause,
            ends_window: spec.variation.ends_window,
            io_bytes_max: spec.variation.io_bytes_max,
            cpus: std::mem::take(&mut spec.variation.cpus),
            ..Variation::default()
        };
        Some(counted_bytes)
    }

    /// The processors that workers may run on.
    fn cpus(&self) -> Vec<u32> {
        let listed = self.settings.value("cpus_allowed", value::numbers);
        let masked = self.settings.value("cpumask", |text| {
            let mask = value::size(text, value::Base::FIO)?;
            Ok((0..64).filter(|bit| mask >> bit & 1 == 1).collect())
        });
        listed.or(masked).unwrap_or_default()
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
        if matches!(spec.api, IoApi::Sync | IoApi::Mmap) {
            let depth = settings.peek("iodepth").map(|one| value::count(&one.value));
            // 1 has its effect, and what is no number is refused; more is ignored with a warning.
            if matches!(depth, Some(Ok(1) | Err(_))) {
                settings.value("iodepth", value::count);
            }
            return;
        }
        spec.depth = settings.value("iodepth", value::count).unwrap_or(1);
        let batch = settings.value("iodepth_batch_complete_min", value::count).unwrap_or(1);
        let low = settings.value("iodepth_low", value::count).filter(|low| *low > 0);
        // As in fio, neither is more than the depth.
        let drained = low.map_or(1, |low| spec.depth.saturating_sub(low));
        spec.variation.reap_min = batch.max(drained).clamp(1, spec.depth.max(1));
    }

    /// Takes out block sizes that no file holds: as in fio they are never drawn.
    fn fit_blocks(&mut self, spec: &mut IoSpec) {
        let most = u32::try_from(spec.file_bytes()).unwrap_or(u32::MAX);
        let least = spec.block_bytes;
        let Blocks::ByKind { read, write } = &mut spec.variation.blocks else { return };
        let mut is_cut = false;
        for sizes in [read, write] {
            match sizes {
                BlockSizes::One(_) => {}
                BlockSizes::Range { most: largest, .. } => {
                    is_cut |= *largest > most;
                    *largest = (*largest).min(most.max(least));
                }
                BlockSizes::Shares(shares) if shares.iter().any(|share| share.bytes <= most) => {
                    is_cut |= shares.iter().any(|share| share.bytes > most);
                    shares.retain(|share| share.bytes <= most);
                }
                BlockSizes::Shares(_) => {}
            }
        }
        let asked = self.settings.peek("bssplit").or(self.settings.peek("bsrange")).cloned();
        if let (true, Some(assignment)) = (is_cut, asked) {
            self.warn(&assignment, "blocks that are larger than the file are never drawn");
        }
    }

    /// Where nothing is run, gives files that are shares of something the size of a block.
    fn plan_larger(&mut self, spec: &mut IoSpec) {
        let block = u64::from(spec.block_bytes_most());
        let asked = self.settings.peek("size").filter(|size| size.value.contains('%')).cloned();
        if let (true, Some(assignment)) = (spec.file_bytes() < block, asked) {
            spec.size_bytes = block * u64::from(spec.files);
            let io_bytes = spec.variation.io_bytes_max.map(|bytes| bytes.max(spec.size_bytes));
            spec.variation.io_bytes_max = io_bytes;
            self.warn(&assignment, "less than a block here: planned as one, refused in a run");
        }
    }

    fn set_amount(&self, spec: &mut IoSpec, clone: u32, paths: &[PathBuf], times: Times) {
        let job = (self.section.name.as_str(), &self.section.origin);
        let [read, write] = mean_bytes(spec);
        let mean = if spec.mix.reads() { read } else { write };
        let block = (spec.block_bytes, mean);
        spec.runtime = Some(times.runtime.unwrap_or(times::LONGEST));
        let environment = (self.environment, self.plans_only);
        let amounts = Amounts::new(self.settings, job, environment, block);
        let amount = amounts.of(clone, paths);
        let Some(Amount { offset_bytes, file_bytes, io_bytes }) = amount else { return };
        // As in fio, every byte is discarded and then written.
        let io_bytes =
            if spec.mix == Mix::TrimWrite { io_bytes.saturating_mul(2) } else { io_bytes };
        spec.variation.offset_bytes = offset_bytes;
        spec.size_bytes = file_bytes.saturating_mul(paths.len() as u64);
        let says_io_size = self.settings.peek("io_size").is_some();
        let io_bytes = gap_end(spec, file_bytes)
            .filter(|_| !says_io_size)
            .map_or(io_bytes, |most| io_bytes.min(most));
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
        match spec.variation.call {
            Some(FileCall::Create) => return Preparation::Empty,
            Some(FileCall::Stat | FileCall::Delete) => return Preparation::Fallocated,
            _ => {}
        }
        if spec.variation.call.is_some() && spec.mix.writes() {
            return Preparation::Empty;
        }
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
    ) -> FioStream {
        let mut spec = spec.clone();
        spec.variation.sharing = Sharing::Whole;
        let paths = names.by_clone.get(clone as usize).unwrap_or(&names.by_clone[0]).clone();
        if clone > 0 && self.settings.peek("offset_increment").is_some() {
            self.set_amount(&mut spec, clone, &paths, times);
        }
        if let Some(count) = NonZeroUsize::new(spec.variation.cpus.len())
            && self.splits_cpus()
        {
            spec.variation.cpus = vec![spec.variation.cpus[clone as usize % count]];
        }
        spec.variation.start_delay = drawn_delay(times.delay, spec.seed, clone);
        spec.seed = spec.seed.wrapping_add(u64::from(clone).wrapping_mul(SEED_STEP));
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

    /// A refusal of the spec, at the line that caused it.
    fn refusal_of(&self, error: &SpecError) -> FioError {
        let why = format!("{}; {}", error.why, error.fix).replace("--", "");
        let words = match error.option {
            "bs" => ["bssplit", "bsrange", "bs"].as_slice(),
            "ba" => &["ba"],
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
            Some(assignment) => refusal(assignment, Why(why + &in_fios_way(assignment))),
            None => self.refuse(format!("{} {}: {why}", error.option, error.found)),
        }
    }
}

/// How fio reads `4kib`: as 4,000 bytes, where most programs mean 4,096.
fn in_fios_way(assignment: &Assignment) -> String {
    let text = assignment.value.as_str();
    let bytes = value::block(text, value::Base::FIO).unwrap_or_default();
    let number = text.to_ascii_lowercase().strip_suffix("kib").and_then(|one| one.parse().ok());
    match number {
        Some(number)
            if assignment.entry.name == "bs" && bytes == 1000_u32.saturating_mul(number) =>
        {
            let more = number.saturating_mul(1024);
            format!("; in fio's way {text} is {bytes} bytes, and {number}k is {more}")
        }
        _ => String::new(),
    }
}

/// Bytes of a pass over files with gaps that ends, as in fio, where a block has no room left.
fn gap_end(spec: &IoSpec, file_bytes: u64) -> Option<u64> {
    let (Step::Skip(gap), Blocks::Fixed) = (spec.variation.step, &spec.variation.blocks) else {
        return None;
    };
    let block = u64::from(spec.block_bytes);
    let (step, room) = (block + gap, file_bytes.checked_sub(block)?);
    let blocks = room / step + 1;
    // A gap that reaches beyond the end begins another pass.
    let is_over = gap > 0 && blocks * step < file_bytes;
    is_over.then_some(blocks * block * u64::from(spec.files))
}

/// Whether a step counts random offsets.
fn random_is_counted(step: Step) -> bool {
    matches!(step, Step::Run(_) | Step::Repeat(_))
}

fn mean_bytes(spec: &IoSpec) -> [f64; 2] {
    match &spec.variation.blocks {
        Blocks::Fixed => [f64::from(spec.block_bytes); 2],
        Blocks::ByKind { read, write } => [read.mean(), write.mean()],
    }
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
