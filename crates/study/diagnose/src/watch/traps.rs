//! Settings that differ from what the server does.

use iostrata_plan::Layer;
use iostrata_stats::units::bytes;

use super::recording::Recording;
use crate::server_setting::Family;
use crate::statement::Statement;

/// Logarithm of the ratio from which on two sizes are two.
const APART: f64 = 0.2;

/// MariaDB since 11.0 goes by four switches; the flush method sets them at the start only.
pub(crate) fn flush_method(recording: &Recording<'_>) -> Option<Statement> {
    if recording.family != Family::MariaDb || recording.version < (11, 0, 0) {
        return None;
    }
    let method = recording.setting("flush_method")?;
    let is_buffered = recording.is_on("data_file_buffering")?;
    let is_through = recording.is_on("data_file_write_through")?;
    let (buffered, through) = match method {
        "O_DIRECT" | "O_DIRECT_NO_FSYNC" => (false, false),
        "fsync" | "littlesync" | "nosync" => (true, false),
        "O_DSYNC" => (true, true),
        _ => return None,
    };
    if (is_buffered, is_through) == (buffered, through) {
        return None;
    }
    let word = |is_on| if is_on { "ON" } else { "OFF" };
    let text = format!(
        "innodb_flush_method says {method}, but MariaDB from 11.0 on goes by \
         innodb_data_file_buffering ({}) and innodb_data_file_write_through ({}): read those, and \
         set those.",
        word(is_buffered),
        word(is_through),
    );
    let said = Statement::new(Layer::FileApi, 1, text)
        .with("flush_method", method)
        .with("data_file_buffering", word(is_buffered))
        .with("data_file_write_through", word(is_through));
    Some(said)
}

/// MySQL since 8.0.30 has two ways to set the size of the redo log, and shows both.
pub(crate) fn redo_size(recording: &Recording<'_>) -> Option<Statement> {
    let shown = recording.number("redo_log_capacity")?;
    let files = recording.redo_files()?;
    let limit = recording.age_limit()?;
    let (_, held) = recording.redo_capacity()?;
    // Defaults that are nearly the same mislead no reader.
    if recording.family != Family::MySql || (shown / files).ln().abs() < APART {
        return None;
    }
    let (counts, ignored) = if held == shown {
        ("innodb_redo_log_capacity", "innodb_log_file_size and innodb_log_files_in_group")
    } else {
        ("innodb_log_file_size and innodb_log_files_in_group", "innodb_redo_log_capacity")
    };
    let other = if held == shown { files } else { shown };
    let text = format!(
        "MySQL goes by {counts} ({}); {ignored} says {} and is not what holds: the limit of the \
         checkpoint age is {}.",
        bytes(held),
        bytes(other),
        bytes(limit),
    );
    let said = Statement::new(Layer::Engine, 1, text)
        .with("redo_log_capacity_bytes", shown)
        .with("log_files_bytes", files)
        .with("checkpoint_age_limit_bytes", limit);
    Some(said)
}
