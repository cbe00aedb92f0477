//! Changes settings under InnoDB's names while rows are written, and shows what the counters say.
//!
//! `cargo run --release -p iostrata-engine --example live_settings -- DIR`

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_engine::{Counter, Engine, EngineError, Settings};

/// What is turned, one after the other.
const CHANGES: [(&str, &str); 4] = [
    ("redo_log_capacity", "8M"),
    ("redo_log_capacity", "64M"),
    ("adaptive_flushing", "OFF"),
    ("doublewrite", "OFF"),
];

fn main() -> Result<(), EngineError> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("say where: live_settings DIR");
        std::process::exit(2);
    };
    let mut settings = Settings::default();
    for (name, value) in [("buffer_pool_size", "16M"), ("redo_log_capacity", "32M")] {
        settings.set(name, value)?;
    }
    let engine = Engine::open(&directory, settings)?;
    let table = match engine.table("rows")? {
        Some(table) => table,
        None => engine.create_table("rows")?,
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<u64, EngineError> {
            let (mut random, mut commits) = (1_u64, 0);
            while !is_over.load(Ordering::Relaxed) {
                let mut batch = engine.batch();
                for _ in 0..5 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    batch.put(&table, &(random >> 44).to_be_bytes(), &[7; 100])?;
                }
                batch.commit()?;
                commits += 1;
            }
            Ok(commits)
        });
        let turned = CHANGES.iter().try_for_each(|(name, value)| show(&engine, name, value));
        is_over.store(true, Ordering::Relaxed);
        match writer.join() {
            Ok(written) => eprintln!("{} commits in all", written?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        turned
    })?;
    engine.close()
}

/// Changes one setting and shows the second that follows.
fn show(engine: &Engine, name: &str, value: &str) -> Result<(), EngineError> {
    engine.set(name, value)?;
    let before = engine.counters();
    std::thread::sleep(Duration::from_secs(1));
    let second = engine.counters().since(&before);
    eprintln!(
        "{name} = {value}: {} commits, {} pages flushed ({} furiously), {} of {} bytes of \
         checkpoint age, {} delays",
        second[Counter::Commits],
        second[Counter::BufferPoolPagesFlushed],
        second[Counter::BufferFlushSyncTotalPages],
        second[Counter::CheckpointAge],
        second[Counter::CheckpointMaxAge],
        second[Counter::AdmitDelays],
    );
    Ok(())
}
