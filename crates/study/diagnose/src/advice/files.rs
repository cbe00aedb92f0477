//! The number of data files, where writers of one file wait for each other.

use iostrata_run::{Advice, Risk};

use super::{Found, SettingPlace, line};
use crate::pair::{MIXED_FILE_LOCK, PER_FILE_WRITE_LOCK};

/// Files advised where the curve over files says nothing.
const FILES: f64 = 8.0;

pub(super) fn data_files(found: &Found<'_>) -> Option<Advice> {
    let why: Vec<&str> = [PER_FILE_WRITE_LOCK, MIXED_FILE_LOCK]
        .into_iter()
        .filter(|&id| found.get(id).is_some())
        .collect();
    let first = *why.first()?;
    let files = found
        .number(PER_FILE_WRITE_LOCK, "files_enough")
        .filter(|&files| files > 1.0)
        .unwrap_or(FILES);
    let loss = found.get(first)?.effect_pct?;
    let text = format!(
        "One busy file takes {loss:.0} % less than eight; {files} files are enough. Keep \
         innodb_file_per_table on. Partition a table only where most writes go to it: ALTER TABLE \
         rebuilds it, each unique key must hold the partitioning column, and MySQL allows no \
         foreign keys there."
    );
    let undo = "ALTER TABLE ... REMOVE PARTITIONING";
    let advice =
        line("number of data files", format!("{files}"), SettingPlace::Schema, &why, text, undo);
    Some(Advice { risk: Risk::Rebuild, ..advice })
}
