//! Opens an engine in a directory, writes a batch, waits until it is durable, reads it back.
//!
//! `cargo run -p iostrata-engine --example hello -- DIR`
//! README.md shows this file from here on.

use std::path::Path;

use iostrata_engine::{Engine, EngineError};

/// Two rows in a table, durably. It may run again.
pub fn hello(directory: &Path) -> Result<(), EngineError> {
    let engine = Engine::options().open(directory)?; // made if it is not there
    let cities = engine.open_table("cities")?; // so is this
    let mut batch = engine.batch();
    batch.put(&cities, b"Lima", b"Peru")?;
    batch.put(&cities, b"Oslo", b"Norway")?;
    batch.commit()?; // all of it, durable
    assert_eq!(cities.get(b"Oslo")?.as_deref(), Some(&b"Norway"[..]));
    engine.set("io_capacity", "4000")?; // at the next opening as well
    engine.close()
}
// README.md shows it up to here.

fn main() -> Result<(), EngineError> {
    let directory = std::env::args_os().nth(1).unwrap_or_else(|| "cities".into());
    hello(Path::new(&directory))
}
