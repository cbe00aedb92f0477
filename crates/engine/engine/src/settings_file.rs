//! The settings stored with the data, as text.
//!
//! Invariant: the file is replaced as a whole, durably; a crash leaves the old or the new one. It
//! is padded with empty lines to whole blocks, because its disk may be a direct one.

use iostrata_innodb::Settings;
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, Durability, FileMode, FileName};

use crate::error::EngineError;

const SETTINGS: &str = "engine.settings";
const SETTINGS_NEW: &str = "engine.settings.new";
const LOCK: &str = "engine.lock";
const BLOCK_BYTES: usize = 4096;

pub(crate) fn name(text: &str) -> FileName {
    match FileName::new(text) {
        Ok(name) => name,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn lock_name() -> FileName {
    name(LOCK)
}

/// Whether an engine was made here completely.
pub(crate) fn exists(disk: &dyn Disk) -> Result<bool, EngineError> {
    Ok(disk.list()?.contains(&name(SETTINGS)))
}

pub(crate) fn read(disk: &dyn Disk) -> Result<Settings, EngineError> {
    let file = disk.open(&name(SETTINGS), FileMode::Existing)?;
    let result = read_open(disk, file);
    disk.close(file);
    result
}

fn read_open(disk: &dyn Disk, file: iostrata_io::disk::FileId) -> Result<Settings, EngineError> {
    let length = disk.len(file)? as usize;
    let mut bytes = Aligned::zeroed(length.max(1));
    if length > 0 {
        disk.read(file, 0, &mut bytes)?;
    }
    let text = String::from_utf8_lossy(&bytes[..length]);
    let settings = Settings::from_text(&text, Settings::left_out());
    settings.map_err(|error| EngineError::system("read engine.settings", error))
}

pub(crate) fn content(settings: &Settings) -> Vec<u8> {
    let mut text = settings.to_text(&Settings::left_out()).into_bytes();
    text.resize(text.len().next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES), b'\n');
    text
}

pub(crate) fn write(disk: &dyn Disk, settings: &Settings) -> Result<(), EngineError> {
    let text = content(settings);
    let new = name(SETTINGS_NEW);
    let file = disk.open(&new, FileMode::Create)?;
    let written = disk
        .set_len(file, text.len() as u64)
        .and_then(|()| disk.write(file, 0, &Aligned::from_slice(&text), Durability::Volatile))
        .and_then(|()| disk.sync(file, SyncKind::Fsync));
    disk.close(file);
    written?;
    disk.rename(&new, &name(SETTINGS))?;
    Ok(disk.sync_dir()?)
}
