//! Transactions from the driver to the document and back from the run directory.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_linux::host::Root;
use iostrata_load::{
    FailedTransaction, LiveFigures, NextTransaction, Ran, Reach, SessionError, Settlement,
    TransactionCost, TransactionEnd, TransactionLoad, TransactionSource, TransactionWorker, Turn,
};
use iostrata_plan::{OpKind, TransactionSpec};
use iostrata_run::{Event, Manifest, Replicate, RunKind, RunReader, RunResult, RunWriter};
use iostrata_study::{Meter, TransactionFacts, Watcher, transaction_document, transaction_point};

/// Nine new orders, then a deadlock; each takes a millisecond.
struct Clerks;

struct Clerk(u64);

impl TransactionSource for Clerks {
    fn kinds(&self) -> Vec<OpKind> {
        vec![OpKind::NewOrder, OpKind::Payment]
    }

    fn blocks(&self) -> bool {
        true
    }

    fn worker(
        &self,
        _first_slot: u32,
        _slots: u32,
    ) -> Result<Box<dyn TransactionWorker + '_>, SessionError> {
        Ok(Box::new(Clerk(0)))
    }
}

impl TransactionWorker for Clerk {
    fn next(&mut self, _turn: Turn) -> NextTransaction {
        let kind = OpKind::NewOrder;
        NextTransaction { kind, keying: Duration::ZERO, think: Duration::ZERO, is_deferred: false }
    }

    fn run(&mut self, _slot: u32, _turn: Turn) -> Ran {
        self.0 += 1;
        std::thread::sleep(Duration::from_millis(1));
        let ended = match self.0 % 10 {
            0 => TransactionEnd::Failed(FailedTransaction {
                code: "1213".to_owned(),
                text: "deadlock".to_owned(),
                reach: Reach::Transaction,
            }),
            _ => TransactionEnd::Done,
        };
        Ran { kind: OpKind::NewOrder, ended, retries: 1 }
    }

    fn settle(&mut self, _slot: u32, _waits: bool) -> Settlement {
        Settlement::Durable
    }

    fn reopen(&mut self, _slot: u32) -> Result<(), String> {
        Ok(())
    }

    fn cost(&self) -> TransactionCost {
        TransactionCost { round_trips: 4 * self.0, statements: 6 * self.0 }
    }
}

#[derive(Default)]
struct Watching {
    live: Vec<LiveFigures>,
    closed: bool,
}

impl Watcher for Watching {
    fn opened(&mut self) {}
    fn live(&mut self, figures: &LiveFigures) {
        self.live.push(*figures);
    }
    fn closed(&mut self) {
        self.closed = true;
    }
}

fn measured(threads: u32, watching: &mut Watching) -> Replicate {
    let interrupted = AtomicBool::new(false);
    let mut meter = Meter::new(&Root::system(), None, &interrupted, None);
    let spec = TransactionSpec {
        threads,
        warm_up: Some(Duration::from_millis(100)),
        runtime: Some(Duration::from_millis(2_200)),
        ..TransactionSpec::new("tpcc", "stand-in")
    };
    let load = TransactionLoad::new(&Clerks, &spec, false);
    let point = transaction_point(&spec);
    meter.measure(&point, 0, &load, &mut |_| (), &mut [watching]).unwrap().replicate
}

#[test]
fn what_was_driven_is_in_the_document_and_in_the_run_directory() {
    let mut watching = Watching::default();
    let levels = [measured(1, &mut watching), measured(4, &mut watching)];
    assert!(watching.closed && watching.live.len() >= 3, "{:?}", watching.live);
    assert!(watching.live.iter().all(|live| live.tps > 0.0 && live.errors_per_s > 0.0));
    let facts = TransactionFacts { isolation: "none".to_owned(), ..TransactionFacts::default() };
    let mut document = transaction_document(&levels, &facts).unwrap();
    let done = document.completed[&OpKind::NewOrder];
    assert!((document.tps * document.duration_s / done as f64 - 1.0).abs() < 0.01);
    assert!((document.duration_s - 2.2).abs() < 1e-3 && (document.warm_up_s - 0.1).abs() < 1e-3);
    assert_eq!(document.errors.keys().collect::<Vec<_>>(), ["1213"]);
    assert!(document.errors["1213"].abs_diff(done / 9) <= 5, "{:?}", document.errors);
    let driver = document.driver;
    let trips = driver.round_trips_per_txn.unwrap();
    assert!((trips - 4.0 * 10.0 / 9.0).abs() < 0.1, "those of the failed ones are paid: {trips}");
    assert!(driver.cpu_s > 0.0 && driver.us_per_txn.is_some());
    assert_eq!((document.levels.len(), document.series.tps.len()), (2, 2));
    assert!(document.stability.is_some() && document.nopm.is_some());

    let dir = tempfile::tempdir().unwrap();
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let manifest = Manifest::new(RunKind::Tpcc, "0.1.0", &[], now);
    let mut run = RunWriter::create(dir.path(), &manifest).unwrap();
    let events = levels.map(|level| Event::Replicate(Box::new(level)));
    events.iter().for_each(|event| run.append(event).unwrap());
    document.run = Some("here".to_owned());
    run.write_result(&document).unwrap();
    let mut read = RunReader::open(dir.path()).unwrap();
    read.read_histograms().unwrap();
    let [Event::Replicate(first), Event::Replicate(_)] = read.events() else {
        panic!("two replicates were written")
    };
    let Event::Replicate(written) = &events[0] else { unreachable!("only replicates") };
    assert_eq!(first.point, written.point);
    assert_eq!(first.streams[0].transactions, written.streams[0].transactions);
    assert_eq!(first.streams[0].series.counts, written.streams[0].series.counts);
    let Some(RunResult::Transactions(kept)) = read.result() else { panic!("{:?}", read.notes()) };
    assert_eq!((&kept.completed, &kept.errors), (&document.completed, &document.errors));
    assert_eq!((kept.levels.len(), &kept.run), (2, &document.run));
}
