//! Redo, page writes and page reads on one device, and what the batches of an engine cost on a
//! drive.
//!
//! Method: requests pass a limit of their direction, then the credits of the volume, then the disk,
//! each first come, first served; a batch is submitted whole, so a request behind it waits for all
//! of it. An hour has millions of page writes; their costs are taken from a few hundred that the
//! model of the drive does one by one.
//! Invariants: no gate lets more pass in a time than its rate allows; the same drive gives the same
//! curve. A drive that changes by itself over hours (wear, a cache that fills) is not followed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_stats::Random;
use thiserror::Error;

use crate::drive::cloud::CloudParameters;
use crate::drive::{Command, Drive, DriveCompletion, Request};
use crate::model::{MeasuredDisk, ModelError, drive};

/// Lets requests pass at a rate.
#[derive(Clone, Copy, Debug)]
struct Gate {
    gap_ns: f64,
    free_ns: f64,
}

impl Gate {
    fn new(iops: f64) -> Self {
        Self { gap_ns: 1e9 / iops.max(1e-3), free_ns: 0.0 }
    }

    /// When the first and the last of so many requests have passed.
    fn pass(&mut self, now_ns: f64, requests: f64) -> (f64, f64) {
        let first = self.free_ns.max(now_ns);
        self.free_ns = first + requests * self.gap_ns;
        (first, self.free_ns - self.gap_ns)
    }
}

/// Credits as they are left.
#[derive(Clone, Copy, Debug)]
struct CreditStore {
    credits: Credits,
    left: f64,
    counted_ns: f64,
    free_ns: f64,
}

impl CreditStore {
    /// Those that credits are left for pass at the burst rate, the others as credits come.
    fn pass(&mut self, now_ns: f64, requests: f64) -> (f64, f64) {
        let Credits { burst_iops, baseline_iops, most, .. } = self.credits;
        let first = self.free_ns.max(now_ns);
        let earned = (first - self.counted_ns).max(0.0) / 1e9 * baseline_iops;
        self.left = (self.left + earned).min(most);
        let fast = self.left.min(requests);
        let slow = requests - fast;
        self.left -= fast;
        self.free_ns = first + (fast / burst_iops + slow / baseline_iops) * 1e9;
        // What came during the wait was spent by those that waited.
        self.counted_ns = if slow > 0.0 { self.free_ns } else { first };
        let gap_ns = 1e9 / if slow > 0.0 { baseline_iops } else { burst_iops };
        (first, self.free_ns - gap_ns)
    }
}

/// What is done in one go.
#[derive(Clone, Copy, Debug)]
struct Operation {
    is_write: bool,
    requests: f64,
    /// Time that the disk is busy with it, and what is left when the last request has passed.
    work_ns: f64,
    tail_ns: f64,
}

/// A device in virtual time.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    device: FlushDevice,
    page_bytes: f64,
    /// Data files, each of which is synced.
    files: f64,
    reads: Option<Gate>,
    writes: Option<Gate>,
    bucket: Option<CreditStore>,
    disk_free_ns: f64,
    /// When reads complete, the soonest first.
    reading: BinaryHeap<Reverse<u64>>,
    /// Requests that were done.
    pub write_requests: f64,
    pub read_requests: f64,
}

impl Volume {
    pub fn new(device: &FlushDevice, page_bytes: u64, files: u32) -> Self {
        let gate = device.iops_limit().map(Gate::new);
        let bucket = device.credits.map(|credits| CreditStore {
            credits,
            left: credits.begin,
            counted_ns: 0.0,
            free_ns: 0.0,
        });
        Self {
            device: device.clone(),
            page_bytes: page_bytes as f64,
            files: f64::from(files),
            reads: gate,
            writes: gate,
            bucket,
            disk_free_ns: 0.0,
            reading: BinaryHeap::new(),
            write_requests: 0.0,
            read_requests: 0.0,
        }
    }

    /// From now on this limit, each way.
    pub fn set_limit(&mut self, iops: f64) {
        for gate in [&mut self.reads, &mut self.writes].into_iter().flatten() {
            gate.gap_ns = 1e9 / iops.max(1e-3);
        }
    }

    /// Copies of pages behind one another, and their sync. Without a copy only a header is written.
    pub fn copies(&mut self, now_ns: u64, pages: f64, is_whole: bool) -> u64 {
        if !is_whole {
            return self.redo(now_ns, 4096.0, 1.0);
        }
        let requests = ((pages * self.page_bytes + 4096.0) / REQUEST_BYTES_MAX as f64).ceil();
        let work_ns = self.device.curve.copies_ns(pages);
        let tail_ns = self.device.curve.copies_ns(1.0);
        self.pass(now_ns, Operation { is_write: true, requests, work_ns, tail_ns })
    }

    /// Pages at their places; behind the last ones of a `batch` their files are synced.
    pub fn pages(&mut self, now_ns: u64, pages: f64, batch: Option<f64>) -> u64 {
        let curve = &self.device.curve;
        let syncs_ns = batch.map_or(0.0, |pages| {
            let more_syncs = (self.files.min(pages) - 1.0).max(0.0);
            curve.flushed_ns(pages) + more_syncs * curve.flush_ns
        });
        let work_ns = curve.written_ns(pages) + syncs_ns;
        let tail_ns = curve.written_ns(1.0) + syncs_ns;
        self.pass(now_ns, Operation { is_write: true, requests: pages, work_ns, tail_ns })
    }

    /// So many writes of redo one after the other, each synced, `bytes` in all.
    pub fn redo(&mut self, now_ns: u64, bytes: f64, times: f64) -> u64 {
        let each = bytes / times;
        let requests = times * (each / REQUEST_BYTES_MAX as f64).ceil().max(1.0);
        let work_ns = times * self.device.curve.redo_ns(each);
        let tail_ns = work_ns / times;
        self.pass(now_ns, Operation { is_write: true, requests, work_ns, tail_ns })
    }

    /// So many reads of pages, one after the other.
    pub fn read(&mut self, now_ns: u64, pages: f64) -> u64 {
        let curve = &self.device.curve;
        let alone_ns = pages * curve.read_ns;
        let (work_ns, tail_ns) = (pages * curve.read_gap_ns.min(curve.read_ns), curve.read_ns);
        let done =
            self.pass(now_ns, Operation { is_write: false, requests: pages, work_ns, tail_ns });
        let done_ns = done.max(now_ns + alone_ns as u64);
        self.reading.push(Reverse(done_ns));
        done_ns
    }

    /// Reads in flight: a user that reads several pages waits for one at a time.
    pub fn pending_reads(&mut self, now_ns: u64) -> u64 {
        while self.reading.peek().is_some_and(|Reverse(done_ns)| *done_ns <= now_ns) {
            self.reading.pop();
        }
        self.reading.len() as u64
    }

    fn pass(&mut self, now_ns: u64, operation: Operation) -> u64 {
        let Operation { is_write, requests, work_ns, tail_ns } = operation;
        let count = if is_write { &mut self.write_requests } else { &mut self.read_requests };
        *count += requests;
        let gate = if is_write { &mut self.writes } else { &mut self.reads };
        let now = now_ns as f64;
        let (first, last) = gate.as_mut().map_or((now, now), |gate| gate.pass(now, requests));
        let credit = self.bucket.as_mut().map(|bucket| bucket.pass(first, requests));
        let last = credit.map_or(last, |(_, passed)| passed.max(last));
        // Counted now: the disk does not stand still for those that wait at a gate.
        self.disk_free_ns = self.disk_free_ns.max(now) + work_ns;
        self.disk_free_ns.max(last + tail_ns).ceil() as u64
    }
}

/// Bytes of a disk whose data would fit twice into less.
const DISK_BYTES: u64 = 100 << 30;

/// Why a device can't be modelled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DeviceError {
    /// The disk.
    #[error("--device {disk}: {cause}")]
    Model {
        /// The disk.
        disk: String,
        /// What is wrong with it.
        cause: ModelError,
    },
    /// The limit.
    #[error("a limit of {found} requests per second; it takes 1 to 100,000,000")]
    Limit {
        /// What was found.
        found: f64,
    },
}

/// Credits of a volume: the rate while there are some, and without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Credits {
    pub burst_iops: f64,
    pub baseline_iops: f64,
    pub most: f64,
    pub begin: f64,
}

/// A disk and its limit, with what batches cost on it.
#[derive(Clone, Debug)]
pub struct FlushDevice {
    spec: DiskSpec,
    iops_limit: Option<f64>,
    pub(super) curve: Curve,
    pub(super) credits: Option<Credits>,
}

impl FlushDevice {
    /// The disk with so many bytes of data on it in pages of so many, and at most so many reads
    /// and so many writes per second.
    ///
    /// # Errors
    /// A disk that can't be modelled, or a limit that is none.
    pub fn new(
        spec: &DiskSpec,
        measured: Option<&MeasuredDisk>,
        iops_limit: Option<f64>,
        (page_bytes, data_bytes): (u64, u64),
        seed: u64,
    ) -> Result<Self, DeviceError> {
        if let Some(found) = iops_limit.filter(|iops| !(1.0..=1e8).contains(iops)) {
            return Err(DeviceError::Limit { found });
        }
        let capacity_bytes = (2 * data_bytes).max(DISK_BYTES).next_multiple_of(1 << 20);
        let model = drive(spec, capacity_bytes, measured, seed);
        let model = model.map_err(|cause| DeviceError::Model { disk: spec.to_string(), cause })?;
        let credits = (spec.model == DiskModel::CloudBurst).then(|| {
            let volume = CloudParameters::gp2();
            Credits {
                burst_iops: volume.burst_iops,
                baseline_iops: volume.baseline_iops(capacity_bytes),
                most: volume.credits_max,
                begin: spec.credits.map_or(volume.credits_max, f64::from),
            }
        });
        let curve = Curve::of(model, page_bytes, data_bytes, seed);
        Ok(Self { spec: spec.clone(), iops_limit, curve, credits })
    }

    /// The disk.
    pub fn disk(&self) -> &DiskSpec {
        &self.spec
    }

    /// Reads per second and writes per second that pass at most.
    pub fn iops_limit(&self) -> Option<f64> {
        self.iops_limit
    }
}

/// Largest request that a kernel and a limit of a volume count as one.
pub(super) const REQUEST_BYTES_MAX: u64 = 256 << 10;
/// Pages and bytes at which costs are measured; between them they follow a line.
const PAGES: [u32; 6] = [1, 4, 16, 48, 128, 512];
const REDO_BYTES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Operations of each size, of which the first few only warm up.
const TRIES: u32 = 7;
const WARM_UP: u32 = 2;
/// Reads at a time when the most of a drive is measured.
const READS_AT_ONCE: u32 = 32;
const READS: u32 = 256;

/// Times of operations alone on the drive, in ns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// So many pages at random places, then a flush.
    in_place: Vec<(f64, f64)>,
    /// The same before the flush.
    written: Vec<(f64, f64)>,
    /// So many pages behind one another, then a flush.
    copies: Vec<(f64, f64)>,
    /// So many bytes of redo, then a flush.
    redo: Vec<(f64, f64)>,
    /// A flush when there is nothing to flush.
    pub flush_ns: f64,
    /// A read of a page by itself, and the time between reads of many at once.
    pub read_ns: f64,
    pub read_gap_ns: f64,
}

impl Curve {
    /// Measures a drive on which `data_bytes` of data lie before copies and redo.
    pub fn of(drive: Box<dyn Drive>, page_bytes: u64, data_bytes: u64, seed: u64) -> Self {
        let pages = (data_bytes / page_bytes).max(1);
        let end = drive.facts().capacity_bytes;
        let mut bench =
            DriveBench { drive, now_ns: 0, next_id: 0, random: Random::new(seed), page_bytes };
        let tail = (pages * page_bytes).min(end / 2);
        let read_ns = bench.reads(pages, 1, READS / 8);
        let read_gap_ns = bench.reads(pages, READS_AT_ONCE, READS);
        let flush_ns = bench.mean(|bench| bench.flush());
        let [mut in_place, mut written] = [Vec::new(), Vec::new()];
        for count in PAGES {
            let mut writes_ns = Vec::new();
            let cost = bench.mean(|bench| {
                let places = (0..count).map(|_| bench.random.below(pages) * page_bytes).collect();
                writes_ns.push(bench.write(places, page_bytes) as f64);
                bench.flush();
            });
            let late = &writes_ns[WARM_UP as usize..];
            in_place.push((f64::from(count), cost));
            written.push((f64::from(count), late.iter().sum::<f64>() / late.len() as f64));
        }
        let copies = PAGES.map(|count| {
            let bytes = u64::from(count) * page_bytes;
            (f64::from(count), bench.mean(|bench| bench.write_behind(tail, bytes)))
        });
        // Redo goes on where it ended, as long as there is room.
        let (mut at, room) = (tail, (end - tail) / 2);
        let redo = REDO_BYTES.map(|bytes| {
            let cost = bench.mean(|bench| {
                at = if at + bytes > tail + room { tail } else { at };
                at += bytes;
                bench.write_behind(at - bytes, bytes)
            });
            (bytes as f64, cost)
        });
        let (copies, redo) = (copies.to_vec(), redo.to_vec());
        Self { in_place, written, copies, redo, flush_ns, read_ns, read_gap_ns }
    }

    /// So many pages into their places, as many of them at once.
    pub fn written_ns(&self, pages: f64) -> f64 {
        line(&self.written, pages)
    }

    /// The flush behind so many pages.
    pub fn flushed_ns(&self, pages: f64) -> f64 {
        (line(&self.in_place, pages) - line(&self.written, pages)).max(0.0)
    }

    /// So many pages one behind the other.
    pub fn copies_ns(&self, pages: f64) -> f64 {
        line(&self.copies, pages)
    }

    /// So many bytes of redo.
    pub fn redo_ns(&self, bytes: f64) -> f64 {
        line(&self.redo, bytes)
    }
}

/// The value at `x` of a line through points; beyond the last in proportion.
fn line(points: &[(f64, f64)], x: f64) -> f64 {
    let Some(&(first_x, first_y)) = points.first() else { return 0.0 };
    if x <= first_x {
        return first_y;
    }
    for pair in points.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        if x <= x1 {
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
        }
    }
    let (last_x, last_y) = points[points.len() - 1];
    last_y * x / last_x
}

/// A drive and its clock.
struct DriveBench {
    drive: Box<dyn Drive>,
    now_ns: u64,
    next_id: u64,
    random: Random,
    page_bytes: u64,
}

impl DriveBench {
    fn submit(&mut self, command: Command, at_bytes: u64, bytes: u64) {
        self.next_id += 1;
        let request = Request { id: self.next_id, command, at_bytes, bytes: bytes as u32 };
        self.drive.submit(self.now_ns, request);
    }

    /// Waits until so many requests are done.
    fn wait(&mut self, count: usize) {
        let (mut left, mut done) = (count, Vec::<DriveCompletion>::new());
        while left > 0 {
            let Some(next_ns) = self.drive.next_event_ns() else { return };
            self.now_ns = self.now_ns.max(next_ns);
            self.drive.advance(self.now_ns, &mut done);
            left = left.saturating_sub(done.len());
            done.clear();
        }
    }

    fn flush(&mut self) {
        self.submit(Command::Flush, 0, 0);
        self.wait(1);
    }

    /// Writes at places, all at once; how long they took.
    fn write(&mut self, places: Vec<u64>, bytes: u64) -> u64 {
        let (count, begun_ns) = (places.len(), self.now_ns);
        for at_bytes in places {
            self.submit(Command::Write, at_bytes, bytes);
        }
        self.wait(count);
        self.now_ns - begun_ns
    }

    /// One stretch, cut into requests.
    fn write_behind(&mut self, at_bytes: u64, bytes: u64) {
        let (mut at, end, mut count) = (at_bytes, at_bytes + bytes, 0);
        while at < end {
            let some = REQUEST_BYTES_MAX.min(end - at);
            self.submit(Command::Write, at, some);
            (at, count) = (at + some, count + 1);
        }
        self.wait(count);
        self.flush();
    }

    /// Mean time of an operation.
    fn mean(&mut self, mut operation: impl FnMut(&mut Self)) -> f64 {
        let mut begun_ns = self.now_ns;
        for at in 0..TRIES {
            if at == WARM_UP {
                begun_ns = self.now_ns;
            }
            operation(self);
        }
        (self.now_ns - begun_ns) as f64 / f64::from(TRIES - WARM_UP)
    }

    /// Time between the ends of reads, so many at a time.
    fn reads(&mut self, pages: u64, at_once: u32, count: u32) -> f64 {
        let begun_ns = self.now_ns;
        for _ in 0..count / at_once {
            for _ in 0..at_once {
                let at = self.random.below(pages) * self.page_bytes;
                self.submit(Command::Read, at, self.page_bytes);
            }
            self.wait(at_once as usize);
        }
        (self.now_ns - begun_ns) as f64 / f64::from(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_keeps_its_rate_and_delays_no_late_request() {
        let mut gate = Gate::new(1000.0);
        assert_eq!(gate.pass(0.0, 3.0), (0.0, 2e6));
        assert_eq!(gate.pass(1e6, 1.0), (3e6, 3e6));
        assert_eq!(gate.pass(1e9, 1.0), (1e9, 1e9));
    }

    #[test]
    fn credits_run_dry_and_come_back() {
        let credits =
            Credits { burst_iops: 3000.0, baseline_iops: 300.0, most: 1000.0, begin: 1000.0 };
        let mut bucket = CreditStore { credits, left: 1000.0, counted_ns: 0.0, free_ns: 0.0 };
        let mut now_ns = 0.0;
        let mut times = Vec::new();
        for _ in 0..20 {
            bucket.pass(now_ns, 100.0);
            times.push(bucket.free_ns - now_ns);
            now_ns = bucket.free_ns;
        }
        assert!((times[0] - 100.0 / 3000.0 * 1e9).abs() < 1.0, "{times:?}");
        assert!((times[19] - 100.0 / 300.0 * 1e9).abs() < 1e7, "{times:?}");
        bucket.pass(now_ns + 10e9, 1.0);
        assert_eq!(bucket.left, 999.0, "full again, less one");
    }

    #[test]
    fn a_write_does_not_wait_for_reads_that_wait_for_their_own_limit() {
        let disk = "nvme".parse().unwrap();
        let device = FlushDevice::new(&disk, None, Some(1000.0), (16384, 1 << 30), 1).unwrap();
        let mut volume = Volume::new(&device, 16384, 1);
        let alone_ns = volume.clone().redo(0, 4096.0, 1.0);
        let read_ns = (0..100).map(|_| volume.read(0, 1.0)).max().unwrap();
        assert!(read_ns > 99_000_000, "the last read waits for the limit: {read_ns} ns");
        let beside_ns = volume.redo(0, 4096.0, 1.0);
        assert!(beside_ns < alone_ns + 2_000_000, "{beside_ns} ns, {alone_ns} ns alone");
    }

    #[test]
    fn reads_are_pending_until_they_are_done() {
        let disk = "nvme".parse().unwrap();
        let device = FlushDevice::new(&disk, None, None, (16384, 1 << 30), 1).unwrap();
        let mut volume = Volume::new(&device, 16384, 1);
        assert_eq!(volume.pending_reads(0), 0);
        let (one, three) = (volume.read(0, 1.0), volume.read(0, 3.0));
        assert!(one < three);
        let pending = [0, one - 1, one, three].map(|now_ns| volume.pending_reads(now_ns));
        assert_eq!(pending, [2, 2, 1, 0]);
    }

    #[test]
    fn a_line_goes_through_its_points_and_on() {
        let points = [(1.0, 10.0), (3.0, 30.0), (4.0, 60.0)];
        let at = |x| line(&points, x);
        assert_eq!((at(0.5), at(1.0), at(2.0), at(3.5), at(8.0)), (10.0, 10.0, 20.0, 45.0, 120.0));
    }
}
