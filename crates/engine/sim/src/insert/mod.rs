//! An insert load into a table with random indexes, on a page cache, a block queue and a drive.

mod layout;
mod machine;
mod plan;
mod prefill;
mod sampled;
mod simulate;
#[cfg(test)]
mod tests;
mod window;

pub use layout::{DATA_BYTES_PER_ROW, READER_BYTES, READER_TABLE_BYTES};
pub use machine::ROW_CPU_NS;
pub use plan::{
    DISK_BYTES, INDEX_BYTES_PER_ROW, InsertDevice, InsertPlan, POST_QUEUE_SIZES, POST_ROWS_AT,
    ROWS_MIN, index_bytes, rows_of,
};
pub use plan::{InsertError, InsertOutcome, InsertPoint, InsertReader};
pub use simulate::{MEMORY_BYTES, run};
