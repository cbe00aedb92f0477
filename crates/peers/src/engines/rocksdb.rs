//! RocksDB: log-structured merge tree with a write-ahead log, synced for every commit; commits of
//! several threads share a sync by its own group commit.

use std::path::{Path, PathBuf};

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options, ReadOptions, WriteBatch, WriteOptions,
};

use crate::error::PeerError;
use crate::keys::Row;
use crate::store::{Reader, Setup, Store, Visit, Writer};

const NAME: &str = "rocksdb";
/// Its default.
const WRITE_BUFFER_BYTES_MAX: u64 = 64 << 20;
/// Smallest write buffer used here.
const WRITE_BUFFER_BYTES_MIN: u64 = 1 << 20;
/// Rows of one batch while loading.
const LOAD_ROWS: usize = 10_000;

/// An open store.
pub struct Rocksdb {
    dir: PathBuf,
    database: DB,
}

impl Rocksdb {
    /// Opens or makes `dir/rocksdb`. A quarter of the cache is for write buffers: one that fills
    /// and one that is written out.
    pub fn open(dir: &Path, setup: Setup) -> Result<Self, PeerError> {
        let dir = dir.join(NAME);
        let options = options(setup).map_err(PeerError::of(NAME, "make a cache"))?;
        let database = DB::open(&options, &dir).map_err(PeerError::of(NAME, "open"))?;
        Ok(Self { dir, database })
    }

    fn write(&self, rows: &[Row], options: &WriteOptions) -> Result<(), PeerError> {
        if let [row] = rows {
            return self
                .database
                .put_opt(row.key, &row.value, options)
                .map_err(PeerError::of(NAME, "put a row"));
        }
        let mut batch = WriteBatch::default();
        rows.iter().for_each(|row| batch.put(row.key, &row.value));
        self.database.write_opt(batch, options).map_err(PeerError::of(NAME, "commit"))
    }
}

pub(crate) fn options(setup: Setup) -> Result<Options, rocksdb::Error> {
    let buffer_bytes =
        (setup.cache_bytes / 8).clamp(WRITE_BUFFER_BYTES_MIN, WRITE_BUFFER_BYTES_MAX);
    let cache_bytes = setup.cache_bytes.saturating_sub(2 * buffer_bytes);
    let cache = Cache::new_lru_cache(usize::try_from(cache_bytes).unwrap_or(usize::MAX))?;
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&cache);
    blocks.set_bloom_filter(10.0, false);
    blocks.set_format_version(5);
    blocks.set_cache_index_and_filter_blocks(setup.is_direct);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(setup.is_direct);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(usize::try_from(buffer_bytes).unwrap_or(usize::MAX));
    options.set_max_write_buffer_number(2);
    options.set_use_direct_reads(setup.is_direct);
    options.set_use_direct_io_for_flush_and_compaction(setup.is_direct);
    options.set_keep_log_file_num(2);
    options.set_stats_dump_period_sec(0);
    Ok(options)
}

/// The library's version, which is only in the files that it writes.
pub(crate) fn version(dir: &Path) -> String {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = files
        .filter(|file| file.file_name().to_string_lossy().starts_with("OPTIONS-"))
        .filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let version = |text: String| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
        line.map(str::to_owned)
    };
    texts.filter_map(version).next().unwrap_or_else(|| "of unknown version".to_owned())
}

impl Store for Rocksdb {
    fn version(&self) -> String {
        version(&self.dir)
    }

    fn load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), PeerError> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        let mut part = Vec::with_capacity(LOAD_ROWS);
        loop {
            part.clear();
            part.extend(Iterator::take(&mut *rows, LOAD_ROWS));
            if part.is_empty() {
                break;
            }
            self.write(&part, &options)?;
        }
        self.database.flush().map_err(PeerError::of(NAME, "flush"))?;
        self.database.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, PeerError> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(Box::new(RocksdbWriter { store: self, options }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, PeerError> {
        Ok(Box::new(RocksdbReader { store: self, options: ReadOptions::default() }))
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        self.database.cancel_all_background_work(true);
        Ok(())
    }
}

struct RocksdbWriter<'a> {
    store: &'a Rocksdb,
    options: WriteOptions,
}

impl Writer for RocksdbWriter<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), PeerError> {
        self.store.write(rows, &self.options)
    }
}

struct RocksdbReader<'a> {
    store: &'a Rocksdb,
    options: ReadOptions,
}

impl Reader for RocksdbReader<'_> {
    fn get(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool, PeerError> {
        let found = self.store.database.get_pinned_opt(key, &self.options);
        let found = found.map_err(PeerError::of(NAME, "read"))?;
        if let Some(value) = &found {
            seen(value);
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, visit: &mut Visit<'_>) -> Result<(), PeerError> {
        let mut rows = self.store.database.raw_iterator();
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            if visit(key, value).is_break() {
                break;
            }
            rows.next();
        }
        rows.status().map_err(PeerError::of(NAME, "scan"))
    }
}
