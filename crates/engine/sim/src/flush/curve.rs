//! What the batches of an engine cost on a drive, asked of the drive's own model.
//!
//! Purpose: an hour has millions of page writes; their costs are taken from a few hundred that the
//! model of the drive does one by one. Invariant: the same drive gives the same curve.
//! A drive that changes by itself over hours (wear, a cache that fills) is not followed.

use iostrata_stats::Random;

use crate::drive::{Command, Done, Drive, Request};

/// Largest request that a kernel and a limit of a volume count as one.
pub(super) const REQUEST_BYTES_MAX: u64 = 256 << 10;
/// Pages and bytes at which costs are asked for; between them they follow a line.
const PAGES: [u32; 6] = [1, 4, 16, 48, 128, 512];
const REDO_BYTES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Operations of each size, of which the first few only warm up.
const TRIES: u32 = 7;
const WARM_UP: u32 = 2;
/// Reads at a time when a drive is asked for its most.
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
    /// Asks a drive on which `data_bytes` of data lie before copies and redo.
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
        let (mut left, mut done) = (count, Vec::<Done>::new());
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
    fn a_line_goes_through_its_points_and_on() {
        let points = [(1.0, 10.0), (3.0, 30.0), (4.0, 60.0)];
        let at = |x| line(&points, x);
        assert_eq!((at(0.5), at(1.0), at(2.0), at(3.5), at(8.0)), (10.0, 10.0, 20.0, 45.0, 120.0));
    }
}
