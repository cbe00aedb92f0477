//! The engine as a whole on a memory disk.

use std::collections::BTreeMap;
use std::ops::Bound;

use iostrata_io::disk::MemDisk;

use crate::{Background, Direction, Disks, Engine, Settings};

pub(crate) fn small() -> Settings {
    let mut settings = Settings::default();
    for (name, value) in [
        ("page_size", "4K"),
        ("buffer_pool_size", "256K"),
        ("redo_log_capacity", "64K"),
        ("log_buffer_size", "64K"),
        ("autoextend_increment", "64K"),
        ("log_write_ahead_size", "512"),
        ("doublewrite_pages", "16"),
    ] {
        settings.set(name, value).unwrap();
    }
    settings
}

fn open(disk: &MemDisk) -> Engine {
    Engine::open_on(Disks::one(disk.clone()), small(), Background::Manual).unwrap()
}

#[test]
fn rows_are_there_after_a_clean_close() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("t").unwrap();
    let mut model = BTreeMap::new();
    for i in 0..5000_u32 {
        let key = (i.wrapping_mul(2_654_435_761)).to_be_bytes();
        let value = vec![i as u8; (i % 90) as usize];
        let mut batch = engine.batch();
        batch.put(&table, &key, &value).unwrap();
        batch.commit().unwrap().wait().unwrap();
        model.insert(key, value);
    }
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    engine.close().unwrap();
    let engine = open(&disk);
    assert!(engine.recovery().was_clean);
    let table = engine.table("t").unwrap().unwrap();
    let mut rows = table.rows();
    for (key, value) in &model {
        assert_eq!(rows.next().unwrap(), Some((&key[..], &value[..])));
    }
    assert!(rows.next().unwrap().is_none());
    let mut rows = table.range(Bound::Unbounded, Bound::Unbounded, Direction::Backward);
    for (key, value) in model.iter().rev() {
        assert_eq!(rows.next().unwrap(), Some((&key[..], &value[..])));
    }
}
