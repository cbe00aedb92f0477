//! Whether a spec can be run at all.
//!
//! Invariant: every refusal names the option as the user types it, the value found, and the fix.

use crate::variation::{BlockSizes, Blocks, FileCall, Sharing, Step, Strides};
use crate::{Access, IoApi, IoSpec, Mix, SyncWrites, ValueError};
use iostrata_stats::units::Size;

/// The smallest request. Direct I/O takes its multiples on every device that has such sectors.
pub const BLOCK_BYTES_MIN: u32 = 512;
/// What a block that is verified has at least.
const SEAL_BYTES: u32 = 32;
/// The largest request.
pub const BLOCK_BYTES_MAX: u32 = 1 << 30;
pub(crate) const JOBS_MAX: u32 = 4096;
pub(crate) const DEPTH_MAX: u32 = 4096;
pub(crate) const FILES_MAX: u32 = 65_536;

/// A spec that cannot be run, in the user's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{option} {found}: {why}; {fix}")]
pub struct SpecError {
    /// The option's long name without dashes.
    pub option: &'static str,
    /// The value it had.
    pub found: String,
    /// What is wrong with it.
    pub why: String,
    /// What to do instead.
    pub fix: String,
}

/// The existing block sizes, as a fix.
pub fn block_range() -> String {
    format!("use {} to {}", Size(BLOCK_BYTES_MIN.into()), Size(BLOCK_BYTES_MAX.into()))
}

pub(crate) fn refuse(
    option: &'static str,
    found: impl ToString,
    why: impl Into<String>,
    fix: impl Into<String>,
) -> Result<(), SpecError> {
    Err(SpecError { option, found: found.to_string(), why: why.into(), fix: fix.into() })
}

impl IoSpec {
    /// Checks every option and every combination that can be judged without looking at the disk.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_counts()?;
        self.check_blocks()?;
        self.check_variation()?;
        self.check_api()?;
        self.check_time()
    }

    fn check_counts(&self) -> Result<(), SpecError> {
        for (option, found, most) in [
            ("iodepth", self.depth, DEPTH_MAX),
            ("numjobs", self.jobs, JOBS_MAX),
            ("nrfiles", self.files, FILES_MAX),
        ] {
            if found == 0 || found > most {
                return refuse(option, found, "out of range", format!("use 1 to {most}"));
            }
        }
        if let Some(flush) = self.flush
            && flush.every == 0
        {
            return refuse(
                "fsync",
                0,
                "a flush after every 0 writes",
                "use 1 or more, or leave it out",
            );
        }
        if let crate::Mix::Both { read_pct } = self.mix
            && read_pct > 100
        {
            return refuse("rwmixread", read_pct, "over a hundred percent", "use 0 to 100");
        }
        if let Access::Zipfian(theta) = self.access
            && let Err(ValueError { why, fix }) = theta.checked()
        {
            return refuse("random-distribution", theta.0, why, fix);
        }
        Ok(())
    }

    fn check_blocks(&self) -> Result<(), SpecError> {
        let (block, bs) = (self.block_bytes, Size(u64::from(self.block_bytes)));
        if !(self.block_bytes_min()..=self.block_bytes_max()).contains(&block) {
            return refuse("bs", bs, "out of range", block_range());
        }
        if self.direct && !block.is_multiple_of(BLOCK_BYTES_MIN) {
            return refuse(
                "bs",
                bs,
                "direct I/O needs whole sectors",
                "use a multiple of 512, or --direct=0",
            );
        }
        if self.size_bytes > i64::MAX as u64 {
            return refuse("size", Size(self.size_bytes), "larger than any file", "use less");
        }
        if self.file_bytes() < u64::from(block) {
            let size = Size(self.size_bytes);
            let why = format!("smaller than one block of {bs} in each of {} files", self.files);
            let least = Size(u64::from(block) * u64::from(self.files));
            return refuse("size", size, why, format!("use at least {least}"));
        }
        Ok(())
    }

    /// Requests of the page cache may be of any length; one that is verified holds a seal.
    fn block_bytes_min(&self) -> u32 {
        match (&self.variation.verify, self.direct) {
            (_, true) => BLOCK_BYTES_MIN,
            (Some(verify), false) if verify.pattern.is_empty() => SEAL_BYTES,
            _ => 1,
        }
    }

    /// A discard has no content, so that it may be larger than any buffer.
    fn block_bytes_max(&self) -> u32 {
        if self.mix == Mix::Trim { u32::MAX } else { BLOCK_BYTES_MAX }
    }

    fn check_variation(&self) -> Result<(), SpecError> {
        let varied = &self.variation;
        if let Blocks::ByKind { read, write } = &varied.blocks {
            self.check_sizes(read)?;
            self.check_sizes(write)?;
            assert_eq!(self.block_bytes, read.least().min(write.least()), "the smallest block");
            let (most, file) = (Size(self.block_bytes_most().into()), Size(self.file_bytes()));
            if most > file {
                let fix = format!("use at least {most} for each file");
                return refuse("size", file, "smaller than the largest block", fix);
            }
        }
        if !varied.is_plain_order() && varied.sharing == Sharing::Parts {
            let why = "jobs that share files in parts make plain requests only";
            return refuse("numjobs", self.jobs, why, "let each job use all of its files");
        }
        if let Some(pause) = varied.pause
            && pause.every == 0
        {
            return refuse("thinktime_blocks", 0, "a pause after 0 requests", "use 1 or more");
        }
        let calls_open_files = varied.call.is_some_and(|call| !call.is_by_name());
        if varied.call == Some(FileCall::Truncate) && self.mix != Mix::Write {
            return refuse("rw", "a mix", "ftruncate only cuts", "use write or randwrite");
        }
        if calls_open_files && varied.verify.is_some() {
            let why = "fallocate and ftruncate leave no contents to verify";
            return refuse("verify", 1, why, "leave it out");
        }
        if varied.bs_unaligned && self.direct {
            let fix = "use direct=0, or leave it out";
            return refuse("bs_unaligned", 1, "direct I/O needs whole sectors", fix);
        }
        let [read, write] = varied.align_bytes.unwrap_or([BLOCK_BYTES_MIN; 2]);
        for align in [read, write] {
            if align == 0 || (self.direct && !align.is_multiple_of(BLOCK_BYTES_MIN)) {
                let fix = "use multiples of 512, or direct=0";
                return refuse("ba", align, "direct I/O needs whole sectors", fix);
            }
        }
        if varied.io_bytes_max == Some(0) {
            return refuse("io_size", 0, "there is nothing to do", "use one block or more");
        }
        if varied.reap_min == 0 || varied.reap_min > self.depth {
            let fix = format!("use 1 to {}, the depth", self.depth);
            let (option, found) = ("iodepth_batch_complete_min", varied.reap_min);
            return refuse(option, found, "no such number is ever in flight", fix);
        }
        if let Some(Strides { moved_bytes, zone_bytes, .. }) = varied.strides
            && (moved_bytes == 0 || zone_bytes < u64::from(self.block_bytes_most()))
        {
            let fix = "use zones of a block or more";
            return refuse("zonesize", zone_bytes, "a zone holds no request", fix);
        }
        if matches!(varied.step, Step::Run(0) | Step::Repeat(0)) {
            return refuse("rw", 0, "a random offset for every 0 requests", "use 1 or more");
        }
        Ok(())
    }

    fn check_sizes(&self, sizes: &BlockSizes) -> Result<(), SpecError> {
        let each: Vec<u32> = match sizes {
            BlockSizes::One(bytes) => vec![*bytes],
            BlockSizes::Range { least, most } => vec![*least, *most],
            BlockSizes::Shares(shares) => shares.iter().map(|share| share.bytes).collect(),
        };
        if each.is_empty() {
            return refuse("bssplit", "nothing", "no size is given", "write for example 4k/100");
        }
        for bytes in each {
            let size = Size(bytes.into());
            if !(self.block_bytes_min()..=self.block_bytes_max()).contains(&bytes) {
                return refuse("bs", size, "out of range", block_range());
            }
            if self.direct && !bytes.is_multiple_of(BLOCK_BYTES_MIN) {
                let why = "direct I/O needs whole sectors";
                return refuse("bs", size, why, "use multiples of 512, or direct=0");
            }
        }
        Ok(())
    }

    fn check_api(&self) -> Result<(), SpecError> {
        let one_at_a_time = matches!(self.api, IoApi::Sync | IoApi::Mmap);
        if one_at_a_time && self.depth > 1 {
            return refuse(
                "iodepth",
                self.depth,
                "the sync and mmap APIs have one request in flight per job",
                "use --ioengine libaio or io_uring, or more --numjobs",
            );
        }
        let is_mapped = self.api == IoApi::Mmap;
        if is_mapped
            && (self.direct || !matches!(self.sync, SyncWrites::None | SyncWrites::RwfDsync))
        {
            let fix = "use --direct=0 and --sync none or rwf_dsync";
            return refuse("direct", 1, "mapped files lie in the page cache", fix);
        }
        if self.polled && (self.api != IoApi::IoUring || !self.direct) {
            return refuse(
                "hipri",
                1,
                "only io_uring polls, and only with direct I/O",
                "use --ioengine io_uring --direct, or leave it out",
            );
        }
        if self.flush.is_some() && !self.mix.writes() {
            return refuse(
                "fsync",
                self.flush.map_or(0, |flush| flush.every),
                "there are only reads",
                "use a --rw that writes, or leave it out",
            );
        }
        Ok(())
    }

    fn check_time(&self) -> Result<(), SpecError> {
        let is_possible = |rate_iops: &f64| *rate_iops > 0.0 && *rate_iops <= 1e9;
        if let Some(rate_iops) = self.pacing.rates().find(|rate| !is_possible(rate)) {
            return refuse(
                "rate-iops",
                rate_iops,
                "no schedule can be made from it",
                "use above 0 and up to 1000000000, or leave it out",
            );
        }
        for (option, time) in [("runtime", self.runtime), ("point-time", Some(self.point_time))] {
            if let Some(time) = time
                && !(1e-3..=31_536_000.0).contains(&time.as_secs_f64())
            {
                return refuse(option, format!("{time:?}"), "out of range", "use 1ms to a year");
            }
        }
        if !(self.precision > 0.0 && self.precision < 1.0) {
            return refuse(
                "precision",
                self.precision,
                "out of range",
                "use for example 0.03 or 3%",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pacing;
    use crate::ZipfTheta;
    use proptest::prelude::*;

    fn refused(change: impl FnOnce(&mut IoSpec)) -> SpecError {
        let mut spec = IoSpec::new("x");
        change(&mut spec);
        spec.check().unwrap_err()
    }

    #[test]
    fn the_defaults_can_be_run() {
        assert_eq!(IoSpec::new("x").check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_run_names_option_value_and_fix() {
        let cases = [
            (refused(|s| s.depth = 2), "iodepth", "2"),
            (refused(|s| s.depth = 0), "iodepth", "0"),
            (refused(|s| s.jobs = 0), "numjobs", "0"),
            (refused(|s| s.files = 0), "nrfiles", "0"),
            (refused(|s| (s.direct, s.block_bytes) = (true, 1000)), "bs", "1000"),
            (refused(|s| s.block_bytes = 2 << 30), "bs", "2G"),
            (refused(|s| s.size_bytes = 1024), "size", "1K"),
            (
                refused(|s| {
                    s.pacing = Pacing::Open { rate_iops: 0.0, process: Default::default() }
                }),
                "rate-iops",
                "0",
            ),
            (refused(|s| s.precision = 0.0), "precision", "0"),
            (refused(|s| s.runtime = Some(Default::default())), "runtime", "0ns"),
            (refused(|s| s.access = Access::Zipfian(ZipfTheta(4.5))), "random-distribution", "4.5"),
            (refused(|s| s.access = Access::Zipfian(ZipfTheta(1.0))), "random-distribution", "1"),
            (refused(|s| s.variation.reap_min = 2), "iodepth_batch_complete_min", "2"),
            (refused(|s| s.variation.step = Step::Run(4)), "numjobs", "1"),
            (refused(|s| s.variation.io_bytes_max = Some(0)), "io_size", "0"),
        ];
        for (error, option, found) in cases {
            assert_eq!((error.option, error.found.as_str()), (option, found));
            assert!(error.to_string().starts_with(&format!("--{option} {found}: ")), "{error}");
        }
    }

    fn cases() -> ProptestConfig {
        let is_long = std::env::var_os("IOSTRATA_SOAK").is_some();
        ProptestConfig::with_cases(if is_long { 4096 } else { 64 })
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn no_combination_panics(
            block_bytes: u32, depth in 0_u32..5000, jobs in 0_u32..5000, files in 0_u32..70_000,
            size_bytes: u64, direct: bool, polled: bool, read_pct: u8, rate_iops: f64,
            precision: f64, millis: u64, theta: f64,
        ) {
            let mut spec = IoSpec::new("x");
            (spec.block_bytes, spec.depth) = (block_bytes, depth);
            (spec.jobs, spec.files) = (jobs, files);
            (spec.size_bytes, spec.direct, spec.polled) = (size_bytes, direct, polled);
            (spec.mix, spec.precision) = (Mix::Both { read_pct }, precision);
            spec.pacing = Pacing::Open { rate_iops, process: Default::default() };
            spec.access = Access::Zipfian(ZipfTheta(theta));
            spec.runtime = Some(std::time::Duration::from_millis(millis));
            if spec.check().is_ok() {
                prop_assert!(spec.file_bytes() >= u64::from(block_bytes));
                prop_assert!(spec.file_bytes() * u64::from(files) <= size_bytes);
            }
        }
    }
}
