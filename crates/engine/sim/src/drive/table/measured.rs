//! What a probe says of a device, as far as a model needs it.
//!
//! The rungs are those of `iostrata probe`: random reads of 4 and 16 KiB at rising depth,
//! overwrites of 16 KiB by 1 thread, 8 threads and 32 in flight, commits of 4 KiB by 1, 4 and 16
//! threads, and an empty flush.

use iostrata_plan::rung;
use iostrata_run::ProbeDocument;

use crate::drive::Command;
use crate::model::ModelError;

const SMALL_BYTES: f64 = 4096.0;
const PAGE_BYTES: f64 = 16_384.0;
/// Depths of the read rungs.
const READ_DEPTHS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Rungs that write 16 KiB, with their depth.
const WRITES: [(u32, &str); 3] =
    [(1, rung::OVERWRITE_16K), (8, rung::WRITE_16K_FILES_8), (32, rung::SUSTAINED_16K)];
/// Rungs that write 4 KiB and flush, with their depth.
const COMMITS: [(u32, &str); 3] =
    [(1, rung::COMMIT_FDATASYNC), (4, rung::COMMIT_FDATASYNC_4), (16, rung::COMMIT_FDATASYNC_16)];
/// Bytes that a volatile cache of unknown size is taken to hold.
const VOLATILE_BYTES: u64 = 32 << 20;
/// 99th percentile over mean beyond which a log-normal is no likeness.
const TAIL_MAX: f64 = 5.0;

/// What a probe measured of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredDisk {
    read_small: Curve,
    read_page: Option<Curve>,
    write_page: Curve,
    commit: Option<Curve>,
    empty_flush_ns: f64,
    volatile_bytes: u64,
    sigma: f64,
}

impl MeasuredDisk {
    /// What a probe's document says.
    ///
    /// # Errors
    /// When the probe measured no 4 KiB reads or no 16 KiB writes.
    pub fn from_probe(probe: &ProbeDocument) -> Result<Self, ModelError> {
        let rung =
            |name: &str| probe.rungs.iter().find(|rung| rung.name == name).map(|rung| rung.value);
        let reads = |block: &str| {
            Curve::new(READ_DEPTHS.into_iter().filter_map(|depth| {
                rung(&format!("read_{block}_depth_{depth}")).map(|rate| (depth, rate))
            }))
        };
        let named = |rungs: [(u32, &str); 3]| {
            let rates = rungs.into_iter().filter_map(|(depth, name)| Some((depth, rung(name)?)));
            Curve::new(rates)
        };
        let missing = |what| ModelError::ProbeIncomplete {
            what,
            fix: "probe a directory that can be written, to the end",
        };
        let has_volatile_cache = probe
            .host
            .path
            .devices
            .iter()
            .any(|device| device.write_cache.as_deref() == Some("write back"));
        Ok(Self {
            read_small: reads("4k").ok_or_else(|| missing("random reads of 4 KiB"))?,
            read_page: reads("16k"),
            write_page: named(WRITES).ok_or_else(|| missing("overwrites of 16 KiB"))?,
            commit: named(COMMITS),
            empty_flush_ns: rung(rung::FLUSH_EMPTY).unwrap_or(0.0) * 1e3,
            volatile_bytes: if has_volatile_cache { VOLATILE_BYTES } else { 0 },
            sigma: sigma(probe),
        })
    }

    /// Most bytes that a power cut could take: 0 where the device says that it writes through.
    pub fn volatile_bytes(&self) -> u64 {
        self.volatile_bytes
    }

    /// Requests in flight beyond which more of them change nothing.
    pub fn depth_max(&self) -> u32 {
        self.read_small.depth_max().max(self.write_page.depth_max())
    }

    /// Standard deviation of the logarithm of a request's time.
    pub(super) fn sigma(&self) -> f64 {
        self.sigma
    }

    /// Time between two that are done, in ns, with so many in flight.
    pub(super) fn each_ns(&self, command: Command, bytes: u32, depth: u32) -> f64 {
        match command {
            Command::Read => self.read_ns(f64::from(bytes), depth),
            Command::Write => self.write_ns(f64::from(bytes), depth),
            Command::WriteThrough => {
                self.write_ns(f64::from(bytes), depth) + self.flush_ns(true, depth)
            }
            Command::Flush => self.flush_ns(true, depth),
        }
    }

    /// Time of a flush; `has_work` says whether something was written since the last one.
    ///
    /// With work it is what a commit of 4 KiB takes beyond its write.
    pub(super) fn flush_ns(&self, has_work: bool, depth: u32) -> f64 {
        match &self.commit {
            Some(commit) if has_work => {
                let beyond_ns = commit.each_ns(depth) - self.write_ns(SMALL_BYTES, depth);
                beyond_ns.max(self.empty_flush_ns / f64::from(depth.max(1)))
            }
            _ => self.empty_flush_ns,
        }
    }

    fn read_ns(&self, bytes: f64, depth: u32) -> f64 {
        let small_ns = self.read_small.each_ns(depth);
        small_ns + self.byte_ns(depth) * (bytes - SMALL_BYTES).max(0.0)
    }

    /// Writes were measured with 16 KiB only; a byte costs what it costs when it is read, and less
    /// bytes never cost less than their part.
    fn write_ns(&self, bytes: f64, depth: u32) -> f64 {
        let page_ns = self.write_page.each_ns(depth);
        let beyond = bytes.max(SMALL_BYTES) - PAGE_BYTES;
        let part_ns = page_ns * bytes.clamp(SMALL_BYTES, PAGE_BYTES) / PAGE_BYTES;
        (page_ns + self.byte_ns(depth) * beyond).max(part_ns)
    }

    /// What a byte more costs, from reads of 4 and of 16 KiB.
    fn byte_ns(&self, depth: u32) -> f64 {
        let Some(page) = &self.read_page else { return 0.0 };
        let beyond_ns = page.each_ns(depth) - self.read_small.each_ns(depth);
        beyond_ns.max(0.0) / (PAGE_BYTES - SMALL_BYTES)
    }
}

/// The spread whose log-normal has the measured ratio of the 99th percentile to the mean, for
/// single reads: `ln r = 2.326 s - s^2 / 2`.
fn sigma(probe: &ProbeDocument) -> f64 {
    let point = probe
        .curves
        .iter()
        .filter(|curve| curve.name == "read_4k")
        .find_map(|curve| curve.points.iter().find(|point| point.x == 1.0));
    let tail = point.and_then(|point| Some(point.latency_p99_us? / point.latency_mean_us?));
    let Some(tail) = tail.filter(|tail| tail.is_finite()) else { return 0.0 };
    const Z99: f64 = 2.326;
    Z99 - (Z99 * Z99 - 2.0 * tail.clamp(1.0, TAIL_MAX).ln()).sqrt()
}

/// Points by rising depth; at least one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// From depths and rates per second; rates that are not above 0 are left out. `None` without
    /// any.
    pub(super) fn new(points: impl IntoIterator<Item = (u32, f64)>) -> Option<Self> {
        let mut points: Vec<(f64, f64)> = points
            .into_iter()
            .filter(|(depth, rate)| *depth > 0 && rate.is_finite() && *rate > 0.0)
            .map(|(depth, rate)| (f64::from(depth), rate))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (!points.is_empty()).then_some(Self(points))
    }

    /// Time between two that are done, in ns, with so many in flight: the measured one at measured
    /// depths. Between two depths the rate follows the logarithm of the depth; below the first it
    /// falls with the depth, beyond the last it stays.
    pub(super) fn each_ns(&self, depth: u32) -> f64 {
        1e9 / self.rate(f64::from(depth.max(1)))
    }

    /// Deepest point.
    pub(super) fn depth_max(&self) -> u32 {
        self.0.last().map_or(1, |(depth, _)| *depth as u32)
    }

    fn rate(&self, depth: f64) -> f64 {
        let above = self.0.partition_point(|(known, _)| *known < depth);
        match (above.checked_sub(1).map(|below| self.0[below]), self.0.get(above)) {
            (Some((low, low_rate)), Some((high, high_rate))) => {
                let share = (depth / low).ln() / (high / low).ln();
                low_rate + share * (high_rate - low_rate)
            }
            (None, Some((first, rate))) => rate * depth / first,
            (Some((_, rate)), None) => rate,
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod curve_tests {
    use super::*;

    #[test]
    fn it_passes_through_its_points() {
        let curve = Curve::new([(8, 40_000.0), (2, 20_000.0), (4, 0.0)]).unwrap();
        assert_eq!(curve.each_ns(2), 50_000.0);
        assert_eq!(curve.each_ns(8), 25_000.0);
        assert_eq!(curve.each_ns(1), 100_000.0, "half the depth, half the rate");
        assert_eq!(curve.each_ns(64), 25_000.0);
        assert!((curve.each_ns(4) - 1e9 / 30_000.0).abs() < 1e-6, "half way in logarithms");
        assert_eq!(curve.depth_max(), 8);
        assert_eq!(Curve::new([(1, f64::NAN), (0, 5.0)]), None);
    }
}
