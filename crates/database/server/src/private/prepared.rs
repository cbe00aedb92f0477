//! Prepared copies: data directories with loaded tables, kept so that every run begins alike.
//!
//! Invariant: a copy exists whole or not at all, since it is moved to its place as the last step;
//! it is only read from then on. What made it and what it holds is recorded next to it.

use std::fs;
use std::path::{Path, PathBuf};

use iostrata_change::{Platform, Session};

use super::error::PrivateError;
use super::program::ServerProgram;
use super::server::{DataSource, PrivateServer};

/// The data directory in a prepared copy.
const DATA: &str = "data";
/// What made it, on the first line, and what it holds, on the second.
const MARK: &str = "prepared.txt";

/// Where a server for `dir` works until its data is moved there: next to it, on its file system.
pub fn scratch_of(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    dir.with_file_name(name)
}

/// The data of a prepared copy; none where the directory is not there.
///
/// # Errors
/// [`PrivateError::NotCopied`] when it is no prepared copy, is one of another version of the
/// server, or holds something else.
pub fn find_prepared(
    dir: &Path,
    program: &ServerProgram,
    contents: &str,
) -> Result<Option<DataSource>, PrivateError> {
    if !dir.exists() {
        return Ok(None);
    }
    let differs = |found: String, fix| Err(PrivateError::NotCopied { dir: dir.into(), found, fix });
    let Ok(found) = fs::read_to_string(dir.join(MARK)) else {
        let found = format!("it holds no {MARK}, so it is no prepared copy");
        return differs(found, "name a directory that does not exist yet");
    };
    let (found, needed) = (found.lines(), mark(program, contents));
    let found = found.map(Some).chain(std::iter::repeat(None));
    match found.zip(needed.lines()).find(|(found, needed)| *found != Some(*needed)) {
        None => Ok(Some(DataSource::CopyOf(dir.join(DATA)))),
        Some((found, needed)) => differs(
            format!("it holds `{}`, and this run needs `{needed}`", found.unwrap_or_default()),
            "name another directory, or remove this one to have it prepared again",
        ),
    }
}

/// Shuts a server down and keeps its data in a directory that does not exist yet, next to the
/// server's own (see [`scratch_of`]); the rest of the server is removed.
///
/// # Errors
/// When the server does not end or the data cannot be moved; the session removes what is left.
pub fn keep_prepared<W: Platform>(
    session: &mut Session<W>,
    mut server: PrivateServer,
    dir: &Path,
    contents: &str,
) -> Result<(), PrivateError> {
    server.stop(session)?;
    let whole = server.dir().join("whole");
    let mark = mark(server.program(), contents);
    let moved = fs::create_dir(&whole)
        .and_then(|()| fs::rename(server.data_dir(), whole.join(DATA)))
        .and_then(|()| fs::write(whole.join(MARK), mark))
        .and_then(|()| fs::rename(&whole, dir));
    moved.map_err(|e| PrivateError::system("keep the data in", dir, e))?;
    server.remove(session)
}

fn mark(program: &ServerProgram, contents: &str) -> String {
    format!("{}\n{contents}\n", program.version.text)
}
