//! Data directories of private servers: made fresh or copied.
//!
//! Invariant: only what lies in the server's own directory is written; a directory that a server
//! has open is never copied, because the copy would be torn.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use iostrata_change::{BoundCommand, Platform, RunAs, RunError};

use super::error::{PrivateError, is_about_options};
use super::options::{self, Layout};
use super::program::ServerProgram;

/// Free space below which no server is begun: a fresh data directory of the newest versions, and
/// some to work with.
const FRESH_BYTES: u64 = 320 << 20;
/// The same besides a copy.
const BESIDE_COPY_BYTES: u64 = 64 << 20;
/// Statements that make the tables of a server, in order: whether they must be there, and endings
/// of the files' names.
const STATEMENTS: [(bool, &str); 6] = [
    (true, "system_tables.sql"),
    (false, "performance_tables.sql"),
    (true, "system_tables_data.sql"),
    (false, "fill_help_tables.sql"),
    (false, "maria_add_gis_sp_bootstrap.sql"),
    (false, "sys_schema.sql"),
];

/// Makes the directories of a layout, readable only for the user who runs the server.
pub(super) fn make_dirs(layout: &Layout, run_as: Option<RunAs>) -> Result<(), PrivateError> {
    let close = |dir: &Path| {
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(dir, mode).map_err(|e| PrivateError::system("close", dir, e))?;
        give(dir, run_as)
    };
    close(&layout.dir)?;
    for dir in [&layout.data, &layout.temporary()] {
        if !dir.exists() {
            fs::create_dir(dir).map_err(|e| PrivateError::system("make", dir, e))?;
            close(dir)?;
        }
    }
    Ok(())
}

/// Fills an empty data directory with the tables of a server without users but root, who needs no
/// password.
pub(super) fn make_fresh(
    program: &ServerProgram,
    layout: &Layout,
    run_as: Option<RunAs>,
    as_root: bool,
    options: &[String],
) -> Result<(), PrivateError> {
    let input = match options::makes_its_own(program) {
        true => None,
        false => Some(write_statements(program, layout)?),
    };
    let command = BoundCommand {
        program: program.path.clone(),
        arguments: options::making(program, layout, as_root, options),
        input: input.clone(),
        run_as,
    };
    let made = command.run();
    if let Some(file) = input {
        fs::remove_file(&file).map_err(|e| PrivateError::system("remove", &file, e))?;
    }
    let version = program.version.to_string();
    made.map(drop).map_err(|error| match error {
        RunError::Failed(said) if is_about_options(&said) => {
            PrivateError::UnknownOption { version, said }
        }
        said => PrivateError::NotMade { version, dir: layout.data.clone(), said },
    })
}

/// One file with all statements, as the packages' own script has them.
fn write_statements(program: &ServerProgram, layout: &Layout) -> Result<PathBuf, PrivateError> {
    let mut all = "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\n".to_owned();
    if program.version.is_mariadb {
        all.push_str("SET @auth_root_socket=NULL;\n");
    }
    for (is_needed, name) in STATEMENTS {
        let names = ["mariadb_", "mysql_", ""].map(|prefix| format!("{prefix}{name}"));
        let file = match program.statements(&names) {
            Err(_) if !is_needed => continue,
            found => found?,
        };
        let text = fs::read(&file).map_err(|e| PrivateError::system("read", &file, e))?;
        // Accounts for the name of this machine, which is not connected by here.
        let text = String::from_utf8_lossy(&text);
        let kept = text.lines().filter(|line| !line.contains("@current_hostname"));
        kept.for_each(|line| all.extend([line, "\n"]));
    }
    let file = layout.dir.join("tables.sql");
    fs::write(&file, all).map_err(|e| PrivateError::system("write", &file, e))?;
    Ok(file)
}

/// The owner of a data directory, for a process that may become any user.
pub(super) fn owner(dir: &Path) -> Option<RunAs> {
    let meta = fs::metadata(dir).ok()?;
    let owner = RunAs { uid: meta.uid(), gid: meta.gid() };
    (rustix::process::geteuid().is_root() && owner.uid != 0).then_some(owner)
}

/// Copies a data directory that no server has open. File systems that can share blocks do.
pub(super) fn copy(
    platform: &dyn Platform,
    from: &Path,
    to: &Path,
    run_as: Option<RunAs>,
) -> Result<(), PrivateError> {
    let not_copied =
        |found: String, fix| Err(PrivateError::NotCopied { dir: from.to_owned(), found, fix });
    if !from.join("ibdata1").is_file() {
        let fix = "name a data directory of a server that was shut down";
        return not_copied("it holds no ibdata1".to_owned(), fix);
    }
    for name in ["ibdata1", "aria_log_control", "mysql.ibd"] {
        if let Some(user) = platform.writers(&from.join(name)).first() {
            return not_copied(format!("{user} runs on it"), "stop that server first");
        }
    }
    check_space(to, allocated_bytes(from)? + BESIDE_COPY_BYTES)?;
    copy_tree(from, to, run_as)
}

fn copy_tree(from: &Path, to: &Path, run_as: Option<RunAs>) -> Result<(), PrivateError> {
    for entry in entries(from)? {
        let source = entry.path();
        let target = to.join(entry.file_name());
        // Links are followed: a copy stands on its own.
        let meta =
            fs::metadata(&source).map_err(|e| PrivateError::system("look at", &source, e))?;
        let fail = |e| PrivateError::system("copy", &source, e);
        if meta.is_dir() {
            fs::create_dir(&target).map_err(fail)?;
            fs::set_permissions(&target, meta.permissions()).map_err(fail)?;
            copy_tree(&source, &target, run_as)?;
        } else if meta.is_file() && entry.file_name() != "auto.cnf" {
            // That file holds the server's identity, of which each copy gets its own.
            fs::copy(&source, &target).map_err(fail)?;
        } else {
            continue;
        }
        give(&target, run_as)?;
    }
    Ok(())
}

fn allocated_bytes(dir: &Path) -> Result<u64, PrivateError> {
    let mut bytes = 0;
    for entry in entries(dir)? {
        let path = entry.path();
        let meta = fs::metadata(&path).map_err(|e| PrivateError::system("look at", &path, e))?;
        bytes += if meta.is_dir() { allocated_bytes(&path)? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}

fn entries(dir: &Path) -> Result<Vec<fs::DirEntry>, PrivateError> {
    let read = || fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>();
    read().map_err(|e| PrivateError::system("list", dir, e))
}

/// Refuses a place without room for a fresh data directory.
pub(super) fn check_room(dir: &Path) -> Result<(), PrivateError> {
    check_space(dir, FRESH_BYTES)
}

fn check_space(dir: &Path, needed_bytes: u64) -> Result<(), PrivateError> {
    let seen = rustix::fs::statvfs(dir);
    let seen = seen.map_err(|e| PrivateError::system("look at the space of", dir, e.into()))?;
    let free_bytes = seen.f_bavail * seen.f_frsize;
    if free_bytes < needed_bytes {
        return Err(PrivateError::no_space(dir, free_bytes, needed_bytes));
    }
    Ok(())
}

fn give(path: &Path, run_as: Option<RunAs>) -> Result<(), PrivateError> {
    let Some(RunAs { uid, gid }) = run_as else { return Ok(()) };
    chown(path, Some(uid), Some(gid)).map_err(|e| PrivateError::system("give away", path, e))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use iostrata_change::System;

    #[test]
    fn a_copy_stands_on_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("mysql")).unwrap();
        fs::create_dir(&to).unwrap();
        let error = copy(&System::new(), &from, &to, None).unwrap_err().to_string();
        assert!(error.contains("no ibdata1"), "{error}");
        for (name, text) in [("ibdata1", "a"), ("auto.cnf", "b"), ("mysql/user.frm", "c")] {
            fs::write(from.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink(from.join("ibdata1"), from.join("linked")).unwrap();
        copy(&System::new(), &from, &to, None).unwrap();
        assert!(!to.join("auto.cnf").exists());
        fs::remove_dir_all(&from).unwrap();
        for (name, text) in [("ibdata1", "a"), ("mysql/user.frm", "c"), ("linked", "a")] {
            assert_eq!(fs::read_to_string(to.join(name)).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn a_directory_that_is_read_by_others_is_copied_and_one_that_is_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for dir in [&from, &to] {
            fs::create_dir(dir).unwrap();
        }
        let file = from.join("ibdata1");
        fs::write(&file, "a").unwrap();
        for is_written in [false, true] {
            let opened = fs::File::options().read(true).write(is_written).open(&file).unwrap();
            let mut user = Command::new("sleep").arg("60").stdin(opened).spawn().unwrap();
            let copied = copy(&System::new(), &from, &to, None);
            user.kill().unwrap();
            user.wait().unwrap();
            let refused = copied.err().map(|error| error.to_string());
            let named = format!("sleep (process {}) runs on it", user.id());
            assert_eq!(refused.is_some_and(|text| text.contains(&named)), is_written);
        }
    }

    #[test]
    fn a_place_without_room_is_refused() {
        let error = check_space(Path::new("/"), u64::MAX).unwrap_err();
        assert!(matches!(error, PrivateError::NoSpace { .. }), "{error}");
        assert!(check_space(Path::new("/"), 0).is_ok());
    }
}
