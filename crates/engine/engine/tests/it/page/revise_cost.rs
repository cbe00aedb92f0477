//! What revising a row costs. Run alone:
//! `IOSTRATA_COST=1 cargo test --release -p iostrata-page cost -- --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use iostrata_engine::page::{Hunks, PageEdit, PageKind, PageSize, PageView, Record};
use iostrata_innodb::PageNo;

use crate::page::revise::sold;
use crate::page::twin::{NO, Twin};

const BATCHES: usize = 100;
const ROUNDS: usize = 20_000;

/// The least and the median of many batches: others may use the machine meanwhile.
fn timed(what: &str, mut step: impl FnMut(usize)) {
    let mut batch = || {
        let start = Instant::now();
        (0..ROUNDS).for_each(&mut step);
        start.elapsed().as_nanos() as f64 / ROUNDS as f64
    };
    let mut ns: Vec<f64> = (0..BATCHES).map(|_| batch()).collect();
    ns.sort_by(f64::total_cmp);
    eprintln!("{what}: least {:.1} ns, median {:.1}", ns[0], ns[ns.len() / 2]);
}

#[test]
fn cost_of_a_revision() {
    if std::env::var_os("IOSTRATA_COST").is_none() {
        eprintln!("skipped: a measurement; set IOSTRATA_COST=1");
        return;
    }
    let values = sold().map(|stock| stock.value());
    let [before, after] = &values;
    let other: Vec<u8> = before.iter().map(|byte| !byte).collect();
    let (mut out, mut log) = (Vec::new(), Vec::new());
    for (what, new) in [("a stock row", after), ("the same", before), ("all other", &other)] {
        timed(&format!("build, 322 bytes, {what}"), |_| {
            let (header, payload) = black_box(new).split_at(16);
            black_box(Hunks::between(black_box(before), [header, payload], &mut out));
        });
    }
    let mut twin = Twin::new(PageSize::DEFAULT, PageKind::Leaf);
    for key in 0..40_u32 {
        let key = key.to_be_bytes();
        let slot = twin.view().count();
        twin.apply(&Record::Insert { slot, flags: 1, key: &key, value: before }).unwrap();
    }
    let mut page = twin.view().bytes().to_vec();
    let mut outs = [Vec::new(), Vec::new()];
    let [there, back] = &mut outs;
    let hunks =
        [Hunks::between(before, [after, &[]], there), Hunks::between(after, [before, &[]], back)];
    timed("apply, a stock row", |round| {
        let revise = Record::Revise { slot: 20, flags: 1, len: 322, hunks: hunks[round % 2] };
        black_box(&revise).apply(&mut PageEdit::new(&mut page), NO).unwrap();
    });
    assert_eq!(PageView::new(&page).value(20), before);
    timed("apply, a stock row replaced", |round| {
        let replace = Record::Replace { slot: 20, value: &values[round % 2] };
        black_box(&replace).apply(&mut PageEdit::new(&mut page), NO).unwrap();
    });
    for record in [
        Record::Revise { slot: 20, flags: 1, len: 322, hunks: hunks[0] },
        Record::Replace { slot: 20, value: after },
    ] {
        timed(&format!("encode, {:?}", &format!("{record:?}")[..7]), |_| {
            log.clear();
            black_box(&record).encode(PageNo(1_000_000), &mut log);
        });
    }
}
