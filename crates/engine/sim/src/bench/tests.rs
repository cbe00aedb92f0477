use super::*;
use crate::drive::{Command, Done, Drive, DriveFacts, Request};

/// So many servers of one queue, 100 us a request, 1 ms a flush; remembers what came.
struct Servers {
    free_at_ns: Vec<u64>,
    done: Vec<Done>,
    seen: Vec<Request>,
}

impl Servers {
    fn new(count: usize) -> Self {
        Self { free_at_ns: vec![0; count], done: Vec::new(), seen: Vec::new() }
    }
}

impl Drive for Servers {
    fn facts(&self) -> DriveFacts {
        DriveFacts {
            capacity_bytes: 1 << 20,
            queue_depth: 64,
            volatile_bytes: 0,
            is_rotational: false,
        }
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let free = self.free_at_ns.iter_mut().min().unwrap();
        let cost_ns = if request.command == Command::Flush { 1_000_000 } else { 100_000 };
        *free = (*free).max(now_ns) + cost_ns;
        self.done.push(Done { id: request.id, at_ns: *free });
        self.seen.push(request);
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.done.iter().map(|done| done.at_ns).min()
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        self.done.sort_by_key(|done| done.at_ns);
        let due = self.done.partition_point(|done| done.at_ns <= now_ns);
        done.extend(self.done.drain(..due));
    }
}

fn outcome(drive: &mut Servers, load: &Load) -> BenchOutcome {
    run(drive, load, BenchWindow::seconds(0.1, 1.0), 1).unwrap()
}

#[test]
fn it_finds_the_rate_and_latency_of_known_servers() {
    for (depth, iops, latency_us) in [(1, 10_000.0, 100.0), (4, 40_000.0, 100.0)] {
        let found = outcome(&mut Servers::new(4), &Load::random_read(depth));
        assert!((found.iops.value / iops - 1.0).abs() < 0.001, "{found:?}");
        let [low, high] = found.iops.ci95.unwrap();
        assert!(low <= iops && iops <= high && high - low < iops * 0.01, "{found:?}");
        assert_eq!(found.read.unwrap().latency_us.mean, latency_us);
        assert!(found.write.is_none() && found.flush.is_none());
    }
    // Twice as many as there are servers: every request waits for one other.
    let found = outcome(&mut Servers::new(4), &Load::random_write(8));
    assert!((found.write.unwrap().latency_us.mean / 200.0 - 1.0).abs() < 0.001, "{found:?}");
}

#[test]
fn sequential_places_follow_each_other_and_wrap() {
    let mut drive = Servers::new(1);
    let load = Load { region_bytes: Some(65_536..196_608), ..Load::sequential_read(65_536, 1) };
    let found = outcome(&mut drive, &load);
    let places: Vec<u64> = drive.seen.iter().take(3).map(|request| request.at_bytes).collect();
    assert_eq!(places, [65_536, 131_072, 65_536]);
    assert!((found.bytes_per_s / (10_000.0 * 65_536.0) - 1.0).abs() < 0.001);
}

#[test]
fn a_flush_follows_every_so_many_writes() {
    let mut drive = Servers::new(1);
    let load = Load { flush_every: Some(10), write_through: true, ..Load::random_write(1) };
    let found = outcome(&mut drive, &load);
    assert!(drive.seen[..10].iter().all(|request| request.command == Command::WriteThrough));
    assert_eq!(drive.seen[10].command, Command::Flush);
    assert_eq!(drive.seen[10].bytes, 0);
    assert_eq!(found.flush.unwrap().latency_us.mean, 1_000.0);
    // Ten writes of 100 us and a flush of 1 ms: 5,000 writes a second.
    assert!((found.iops.value / 5_000.0 - 1.0).abs() < 0.01, "{found:?}");
}

#[test]
fn a_mix_holds_its_share_and_the_seed_its_places() {
    let load = Load { read_pct: 70, ..Load::random_read(4) };
    let (mut one, mut other) = (Servers::new(4), Servers::new(4));
    let found = outcome(&mut one, &load);
    let share = found.read.unwrap().iops / found.iops.value;
    assert!((share - 0.7).abs() < 0.02, "{share}");
    assert_eq!(found, outcome(&mut other, &load));
    assert_eq!(one.seen, other.seen);
}

#[test]
fn loads_that_do_not_fit_are_refused() {
    let refused = |load: &Load| {
        run(&mut Servers::new(1), load, BenchWindow::seconds(0.0, 1.0), 1).unwrap_err().to_string()
    };
    assert!(refused(&Load::random_read(0)).contains("the depth is 0"));
    assert!(refused(&Load { read_pct: 101, ..Load::random_read(1) }).contains("0 to 100"));
    let wide = Load { block_bytes: 2 << 20, ..Load::random_read(1) };
    assert!(refused(&wide).contains("do not fit"));
    let beyond = Load { region_bytes: Some(0..2 << 20), ..Load::random_read(1) };
    assert!(refused(&beyond).contains("do not fit"));
    let short = BenchWindow { warm_up_ns: 0, span_ns: 10 };
    let error = run(&mut Servers::new(1), &Load::random_read(1), short, 1).unwrap_err();
    assert_eq!(error, BenchError::Nothing { span_ns: 10 });
}
