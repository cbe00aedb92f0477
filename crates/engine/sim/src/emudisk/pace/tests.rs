use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::drive::DriveFacts;

use super::*;
use crate::emudisk::clock::now_ns;

/// Each request takes as many us as it has bytes.
struct Slowly(Vec<Done>);

impl Drive for Slowly {
    fn facts(&self) -> DriveFacts {
        let capacity_bytes = 1 << 20;
        DriveFacts { capacity_bytes, queue_depth: 9, volatile_bytes: 0, is_rotational: false }
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        self.0.push(Done { id: request.id, at_ns: now_ns + u64::from(request.bytes) * 1000 });
        self.0.sort_by_key(|done| done.at_ns);
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.0.first().map(|done| done.at_ns)
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        let due = self.0.partition_point(|done| done.at_ns <= now_ns);
        done.extend(self.0.drain(..due));
    }
}

type Sent = (&'static str, u64, u64);

fn start() -> (Arc<Pace<&'static str>>, Receiver<Sent>) {
    let pace = Arc::new(Pace::new(Box::new(Slowly(Vec::new())), now_ns()));
    let (sender, receiver) = channel();
    let timer = pace.clone();
    std::thread::spawn(move || {
        run_timer(&timer, |due| sender.send((due.answer, due.at_ns, now_ns())).unwrap());
    });
    (pace, receiver)
}

fn submit(pace: &Pace<&'static str>, bytes: u32, name: &'static str) {
    let mut due = Vec::new();
    pace.submit(now_ns(), Command::Read, 0, bytes, name, &mut due).unwrap();
    assert!(due.is_empty());
}

#[test]
fn answers_come_in_the_models_order_and_not_early() {
    let (pace, sent) = start();
    submit(&pace, 60_000, "last");
    submit(&pace, 20_000, "first");
    std::thread::sleep(std::time::Duration::from_millis(1));
    submit(&pace, 30_000, "second");
    for expected in ["first", "second", "last"] {
        let (name, due_ns, now_ns) = sent.recv().unwrap();
        assert_eq!(name, expected);
        assert!(now_ns >= due_ns, "{name} came {} ns early", due_ns - now_ns);
    }
    pace.end();
    assert!(sent.recv().is_err());
}

#[test]
fn slowed_requests_come_later() {
    let (pace, sent) = start();
    pace.set_slow(50_000_000);
    let before_ns = now_ns();
    submit(&pace, 1000, "slow");
    assert!(sent.recv().unwrap().1 >= before_ns + 51_000_000);
    pace.set_slow(0);
    submit(&pace, 1000, "quick");
    assert_eq!(sent.recv().unwrap().0, "quick");
    pace.end();
}

#[test]
fn what_falls_into_a_pause_comes_at_its_end() {
    let stall = Some(Stall { lasts_ms: 50, every_ms: 1_000 });
    let ms = |at_ms: u64| after_stall(at_ms * 1_000_000, stall) / 1_000_000;
    assert_eq!([ms(2_999), ms(3_000), ms(3_049), ms(3_050)], [2_999, 3_050, 3_050, 3_050]);
    assert_eq!(after_stall(7, None), 7);
    let (pace, sent) = start();
    pace.set_stall(Some(Stall { lasts_ms: 59_999, every_ms: 60_000 }));
    submit(&pace, 1000, "stalled");
    assert!(sent.recv_timeout(std::time::Duration::from_millis(20)).is_err());
    assert_eq!(pace.power_off(now_ns()), ["stalled"]);
    pace.end();
}

#[test]
fn a_power_cut_gives_everything_back() {
    let (pace, sent) = start();
    submit(&pace, 900_000_000, "one");
    submit(&pace, 1000, "quick");
    assert_eq!(sent.recv().unwrap().0, "quick");
    assert_eq!(pace.power_off(now_ns()), ["one"]);
    let refused = pace.submit(now_ns(), Command::Read, 0, 1, "off", &mut Vec::new());
    assert_eq!(refused, Err("off"));
    pace.power_on(Box::new(Slowly(Vec::new())), now_ns());
    submit(&pace, 1000, "again");
    assert_eq!(sent.recv().unwrap().0, "again");
    assert_eq!(pace.tally().depth_max, 2);
    pace.end();
}

/// Says when it got its first request, in its own time.
struct Told(Arc<AtomicU64>);

impl Drive for Told {
    fn facts(&self) -> DriveFacts {
        Slowly(Vec::new()).facts()
    }

    fn submit(&mut self, now_ns: u64, _: Request) {
        self.0.store(now_ns, Ordering::SeqCst);
    }

    fn next_event_ns(&self) -> Option<u64> {
        None
    }

    fn advance(&mut self, _: u64, _: &mut Vec<Done>) {}
}

/// What a volume earns by the second it does not earn from the start of the machine's clock.
#[test]
fn a_drives_time_begins_with_its_power() {
    let told = Arc::new(AtomicU64::new(u64::MAX));
    let before_ns = now_ns();
    let pace = Pace::new(Box::new(Told(told.clone())), before_ns);
    let came = |pace: &Pace<&'static str>| {
        pace.submit(now_ns(), Command::Read, 0, 512, "first", &mut Vec::new()).unwrap();
        told.load(Ordering::SeqCst)
    };
    assert!(came(&pace) <= now_ns() - before_ns);
    pace.power_off(now_ns());
    let again_ns = now_ns();
    pace.power_on(Box::new(Told(told.clone())), again_ns);
    assert!(came(&pace) <= now_ns() - again_ns);
}

/// Has always something to do, and never an answer; tells of every look at it.
struct Busy(std::sync::mpsc::Sender<u64>);

impl Drive for Busy {
    fn facts(&self) -> DriveFacts {
        Slowly(Vec::new()).facts()
    }

    fn submit(&mut self, _: u64, _: Request) {}

    fn next_event_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn next_done_ns(&self) -> Option<u64> {
        None
    }

    fn advance(&mut self, now_ns: u64, _: &mut Vec<Done>) {
        let _nobody_looks_any_more = self.0.send(now_ns);
    }
}

#[test]
fn work_in_the_background_goes_on_while_nobody_asks() {
    let (sender, looks) = channel();
    let pace: Arc<Pace<()>> = Arc::new(Pace::new(Box::new(Busy(sender)), now_ns()));
    let timer = pace.clone();
    std::thread::spawn(move || run_timer(&timer, |_| panic!("nothing is answered")));
    let moments: Vec<u64> = looks.iter().take(3).collect();
    assert!(moments.windows(2).all(|pair| pair[1] - pair[0] >= BACKGROUND_NS), "{moments:?}");
    pace.end();
}
