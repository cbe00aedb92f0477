//! How long recovery takes for so much redo over so many pages.
//!
//! `cargo run --release -p iostrata-engine --example recovery_rate -- DIR [GIB] [PAGES]`
//! Writes that much redo without flushing a page, leaves the engine as a crash would, opens it.

use std::path::PathBuf;
use std::time::Instant;

use iostrata_engine::{Engine, EngineError, Phase, Settings};

/// Rows that fill one page of 16 KiB by half or more, so that every page is one of its own.
const ROWS_PER_PAGE: u64 = 60;

fn main() -> Result<(), EngineError> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!("say where: recovery_rate DIR [GIB] [PAGES]");
        std::process::exit(2);
    };
    let mut number = |default: u64| {
        arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(default)
    };
    let (redo_bytes, pages) = (number(1) << 30, number(50_000));
    let mut settings = Settings::default();
    for (name, value) in [
        ("buffer_pool_size", "1536M"),
        ("redo_log_capacity", "4G"),
        ("adaptive_flushing", "OFF"),
        ("max_dirty_pages_pct", "99"),
        ("idle_flush_pct", "0"),
        ("flush_log_at_trx_commit", "0"),
    ] {
        settings.set(name, value)?;
    }
    let engine = Engine::open(&directory, settings.clone())?;
    let table = engine.create_table("rows")?;
    let rows = pages * ROWS_PER_PAGE;
    table.bulk_load((0..rows).map(|row| (row.to_be_bytes(), [0; 230])))?;
    engine.checkpoint()?;
    let start = Instant::now();
    let before = engine.counters()[iostrata_engine::Counter::LsnCurrent];
    let mut random = 1_u64;
    let mut written = 0;
    while written < redo_bytes {
        let mut batch = engine.batch();
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = ((random >> 33) % rows).to_be_bytes();
            batch.put(&table, &key, &[random as u8; 230])?;
        }
        let _settled_by_the_next = batch.commit()?;
        written = engine.counters()[iostrata_engine::Counter::LsnCurrent] - before;
    }
    engine.batch().commit()?.wait()?;
    let mut last = engine.batch();
    last.put(&table, b"last", b"row")?;
    last.commit()?.wait()?;
    engine.set("flush_log_at_trx_commit", "1")?;
    let mut last = engine.batch();
    last.put(&table, b"last", b"row")?;
    last.commit()?.wait()?;
    eprintln!("{written} bytes of redo written in {:.2} s", start.elapsed().as_secs_f64());
    // The handle goes without closing: what is dirty is lost, as in a crash.
    drop(table);
    drop(engine);

    let (start, mut phase) = (Instant::now(), Phase::Repair);
    let engine = Engine::open_with_progress(&directory, settings, &mut |progress| {
        if progress.phase != phase {
            eprintln!("  {phase:?} until {:.2} s", start.elapsed().as_secs_f64());
            phase = progress.phase;
        }
    })?;
    let report = engine.recovery();
    eprintln!(
        "recovered {} bytes of redo, {} records over {} pages, in {:.2} s",
        report.end_lsn - report.checkpoint_lsn,
        report.records,
        report.pages_changed,
        report.took.as_secs_f64()
    );
    engine.close()
}
