//! The examples of docs/transactions.md, as they stand there: what each isolation level shows. It
//! prints nothing: whatever differs from that text fails.

use iostrata_engine::{
    Background, Disks, Engine, EngineError, Isolation, Settings, Table, TransactionError,
};
use iostrata_io::disk::MemDisk;

/// Runs them all on a disk in memory.
///
/// # Errors
/// Any error of the engine.
pub fn main() -> Result<(), EngineError> {
    let disks = Disks::one(MemDisk::new());
    let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
    let stock = engine.open_table("stock")?;
    accounts(&engine)?;
    for example in [read_committed, repeatable_read, snapshot] {
        engine.transact(Isolation::default(), |t| t.put(&stock, b"pen", b"5"))?;
        example(&engine, &stock)?;
    }
    engine.close()
}

/// Two accounts, made and changed.
fn accounts(engine: &Engine) -> Result<(), EngineError> {
    let accounts = engine.open_table("accounts")?;
    let mut t = engine.begin(Isolation::RepeatableRead)?;
    t.insert(&accounts, b"ann", &100_u64.to_le_bytes())?;
    t.insert(&accounts, b"bob", &100_u64.to_le_bytes())?;
    t.commit()?; // durable from here on

    let add = |value: &mut Vec<u8>, change: i64| {
        let balance = u64::from_le_bytes(value[..8].try_into().expect("8 bytes"));
        *value = balance.saturating_add_signed(change).to_le_bytes().to_vec();
    };
    // Begun again after a deadlock.
    engine.transact(Isolation::RepeatableRead, |t| {
        t.modify(&accounts, b"ann", |value| add(value, -30))?;
        t.modify(&accounts, b"bob", |value| add(value, 30))?;
        Ok::<(), EngineError>(())
    })?;
    Ok(())
}

/// What does not repeat.
fn read_committed(engine: &Engine, stock: &Table) -> Result<(), EngineError> {
    let reader = engine.begin(Isolation::ReadCommitted)?;
    let mut writer = engine.begin(Isolation::ReadCommitted)?;
    writer.put(stock, b"pen", b"4")?;
    assert_eq!(reader.get(stock, b"pen")?.as_deref(), Some(&b"5"[..])); // not committed yet
    writer.commit()?;
    assert_eq!(reader.get(stock, b"pen")?.as_deref(), Some(&b"4"[..])); // does not repeat
    Ok(())
}

/// Plain reads repeat, locking reads show the newest row.
fn repeatable_read(engine: &Engine, stock: &Table) -> Result<(), EngineError> {
    let mut reader = engine.begin(Isolation::RepeatableRead)?;
    assert_eq!(reader.get(stock, b"pen")?.as_deref(), Some(&b"5"[..]));
    let mut writer = engine.begin(Isolation::RepeatableRead)?;
    writer.put(stock, b"pen", b"4")?;
    writer.commit()?;
    assert_eq!(reader.get(stock, b"pen")?.as_deref(), Some(&b"5"[..])); // repeats
    assert_eq!(reader.get_for_update(stock, b"pen")?.as_deref(), Some(&b"4"[..])); // the newest
    Ok(())
}

/// The first to change a row wins.
fn snapshot(engine: &Engine, stock: &Table) -> Result<(), EngineError> {
    let mut second = engine.begin(Isolation::Snapshot)?;
    let mut first = engine.begin(Isolation::Snapshot)?;
    first.put(stock, b"pen", b"4")?;
    first.commit()?;
    assert_eq!(second.get(stock, b"pen")?.as_deref(), Some(&b"5"[..]));
    let conflict = second.put(stock, b"pen", b"4"); // it would undo what the first one did
    assert!(matches!(conflict, Err(EngineError::Transaction(TransactionError::Conflict { .. }))));
    Ok(())
}
