//! Every engine of this build takes orders for a moment; what it settled is there when it is
//! reopened, and what was never loaded is missed.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_peers::engines::Engine;
use iostrata_peers::error::PeerError;
use iostrata_peers::orders::rows::{RowKey, Scale};
use iostrata_peers::orders::store::{OrderThread, RowError};
use iostrata_peers::orders::transaction::{Orders, Scratchpad, run};
use iostrata_peers::orders::{OrdersBench, OrdersPlan, Way, engines, text};
use iostrata_peers::scratch::Scratch;
use iostrata_peers::store::Setup;

const SCALE: Scale = Scale { warehouses: 1, items: 100, customers: 20 };
const SETUP: Setup = Setup { cache_bytes: 64 << 20, writers: 2, is_direct: false };

/// One order; its number.
fn place(thread: &mut dyn OrderThread, orders: &mut Orders) -> Result<u32, RowError> {
    let (order, mut pad, mut number) = (orders.draw(), Scratchpad::default(), 0);
    thread.transact(&mut |rows| {
        number = run(&order, rows, &mut pad)?;
        Ok(())
    })?;
    Ok(number)
}

#[test]
fn every_engine_takes_orders_in_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(dir.path()).unwrap();
    let window = Duration::from_millis(150);
    let plan = OrdersPlan { scale: SCALE, cache_bytes: 64 << 20, window, soak: None, rounds: 1 };
    let (stop, engines) = (AtomicBool::new(false), Engine::built());
    let note = &mut |_: &str| {};
    let mut bench = OrdersBench { plan, scratch: &scratch, stop: &stop, note };
    let found = bench.run(&engines).unwrap();
    assert_eq!(found.ways.iter().map(|way| way.way).collect::<Vec<_>>(), Way::ALL);
    let text = text::text(&found);
    for engine in engines {
        let row = format!("{engine} ");
        let rows = text.lines().filter(|line| line.starts_with(&row)).count();
        assert_eq!(rows, Way::ALL.len(), "{engine}");
    }
    if Engine::Iostrata.is_built() {
        let soak = bench.soak(window).unwrap();
        assert!(soak.soak.parts.is_some() && text::soak(&soak).contains("point reads"));
    }
}

#[test]
fn a_settled_order_is_there_and_a_refused_one_is_not() {
    for engine in Engine::built() {
        let dir = tempfile::tempdir().unwrap();
        let store = engines::open(engine, dir.path(), SETUP).unwrap();
        let mut orders = Orders::new(SCALE, 7);
        let lost = place(&mut *store.thread().unwrap(), &mut orders);
        assert!(matches!(lost, Err(RowError::Missing(_))), "{engine}: nothing is loaded");
        store.load(SCALE).unwrap();
        let order = orders.clone().draw();
        let number = {
            let mut thread = store.thread().unwrap();
            let number = place(&mut *thread, &mut orders).unwrap();
            assert_eq!(thread.settle(0).unwrap(), 1, "{engine}");
            let (refused, mut pad) = (orders.draw(), Scratchpad::default());
            let gone = thread.transact(&mut |rows| {
                run(&refused, rows, &mut pad)?;
                Err(PeerError::Interrupted.into())
            });
            assert!(matches!(gone, Err(RowError::Failed(PeerError::Interrupted))), "{engine}");
            let payment = RowKey::history(refused.payment);
            let mut is_there = true;
            thread
                .transact(&mut |rows| {
                    is_there = rows.get(&payment, &mut |_| {})?;
                    Ok(())
                })
                .unwrap();
            assert!(!is_there, "{engine}: it was rolled back");
            number
        };
        store.close().unwrap();
        let store = engines::open(engine, dir.path(), SETUP).unwrap();
        let mut is_there = false;
        let key = RowKey::order(order.place, number);
        store
            .thread()
            .unwrap()
            .transact(&mut |rows| {
                is_there = rows.get(&key, &mut |_| {})?;
                Ok(())
            })
            .unwrap();
        assert!(is_there, "{engine}");
        store.close().unwrap();
    }
}
