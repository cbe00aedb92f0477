//! What the commands that measure single workloads have in common.

use std::path::{Path, PathBuf};

use iostrata_io::FileSetError;
use iostrata_linux::host::{Root, describe_path};
use iostrata_run::host::PathFacts;
use iostrata_run::{IoDocument, IoOpDocument, OpFigures, StreamFigures};
use iostrata_stats::Verdicts;

use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// What lies under the path, or under its directory when the path does not exist.
pub fn path_facts(path: &Path) -> Option<PathFacts> {
    let existing: PathBuf = if path.exists() {
        path.to_owned()
    } else {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        }
    };
    describe_path(&Root::system(), &existing).ok()
}

/// The text about files that lie in no storage.
pub fn in_memory(facts: &PathFacts) -> Option<String> {
    let kind = facts.file_system.as_deref()?;
    let is_memory = matches!(kind, "tmpfs" | "devtmpfs" | "ramfs");
    is_memory.then(|| format!("its file system is in memory ({kind}): no storage is measured"))
}

/// How a command ends whose files could not be prepared.
pub fn files_ending(error: &FileSetError, interruption: &Interruption) -> ExitError {
    match error {
        FileSetError::Stopped { .. } => ExitError::Interrupted(interruption.exit_code()),
        FileSetError::NoSpace { .. } | FileSetError::System { .. } => {
            ExitError::NotHere(error.to_string())
        }
        error => ExitError::Usage(error.to_string()),
    }
}

/// The contract's document of one stream, over its own part of the window.
pub fn io_document(stream: &StreamFigures, window_s: f64, verdicts: &Verdicts) -> IoDocument {
    let rated = stream.start_lateness_us_p99.is_some();
    let duration_s = stream.duration_s.unwrap_or(window_s);
    let op = |_, figures: &OpFigures| IoOpDocument {
        ios: figures.ios,
        iops: figures.iops.value,
        iops_ci95: figures.iops.ci95,
        iops_n: figures.iops.n,
        iops_repeat_ci95: None,
        iops_repeat_n: 0,
        bytes_per_s: figures.bytes as f64 / duration_s.max(f64::MIN_POSITIVE),
        latency_us: figures.latency_us,
        latency_us_mean_ci95: figures.latency_mean_us.ci95,
        response_us: figures.response_us.filter(|_| rated),
    };
    let mut document = IoDocument {
        ops: stream.ops.map(op),
        cpu: stream.cpu,
        duration_s,
        series: stream.series.clone(),
        depth_mean: stream.depth_mean,
        start_lateness_us_p99: stream.start_lateness_us_p99,
        errors: stream.errors.clone(),
        notes: stream.notes.clone(),
        run: None,
        unknown: Vec::new(),
        verdicts: verdicts.clone(),
    };
    document.check();
    document
}
