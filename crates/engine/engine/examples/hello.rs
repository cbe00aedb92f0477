//! Opens an engine in a directory, writes a batch, waits until it is durable, reads it back.
//!
//! `cargo run -p iostrata-engine --example hello -- DIR`

use std::ops::Bound;
use std::path::PathBuf;

use iostrata_engine::{Direction, Engine, EngineError};

fn main() -> Result<(), EngineError> {
    let directory = std::env::args_os().nth(1).map_or_else(
        || std::env::temp_dir().join(format!("iostrata-hello-{}", std::process::id())),
        PathBuf::from,
    );
    if let Err(error) = std::fs::create_dir_all(&directory) {
        eprintln!("cannot make {}: {error}", directory.display());
        std::process::exit(2);
    }
    let settings = match Engine::kept_settings(&directory)? {
        Some(kept) => kept,
        None => Engine::default_settings(),
    };
    let engine = Engine::open(&directory, settings)?;
    let cities = match engine.table("cities")? {
        Some(table) => table,
        None => engine.create_table("cities")?,
    };

    let mut batch = engine.batch();
    for (name, country) in [("Kyoto", "Japan"), ("Lima", "Peru"), ("Oslo", "Norway")] {
        batch.put(&cities, name.as_bytes(), country.as_bytes())?;
    }
    // Applied and ordered now; durable, and so acknowledged, once the ticket was waited for.
    let ticket = batch.commit()?;
    ticket.wait()?;

    let from = Bound::Included(b"L".as_slice());
    let mut rows = cities.range(from, Bound::Unbounded, Direction::Forward);
    while let Some((name, country)) = rows.next()? {
        eprintln!("{} is in {}", String::from_utf8_lossy(name), String::from_utf8_lossy(country));
    }
    drop(rows);
    engine.close()
}
