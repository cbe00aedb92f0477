//! Settings of a trace buffer of our own, while it is in use.
//!
//! Invariant: only files below an instance that this program made are written; the instance itself,
//! with all its settings, is removed when its change is undone, so single settings need no journal.

use std::io;
use std::path::{Component, Path};

/// Names of own instances begin so.
const OWN_PREFIX: &str = "iostrata-";

/// Writes one file of an instance: recording on or off, a filter, the buffer cleared.
///
/// # Errors
/// When the directory is no instance of ours, the file lies outside it, or the kernel refuses.
pub fn write_instance(instance: &Path, file: &str, value: &str) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    let parent = instance.parent().and_then(Path::file_name);
    let name = instance.file_name().map(|name| name.to_string_lossy());
    let is_ours = name.is_some_and(|name| name.starts_with(OWN_PREFIX));
    if parent.is_none_or(|parent| parent != "instances") || !is_ours {
        return refuse("not a trace instance of this program");
    }
    if !Path::new(file).components().all(|part| matches!(part, Component::Normal(_))) {
        return refuse("not a file of the instance");
    }
    std::fs::write(instance.join(file), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_an_own_instance_is_written() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join(format!("instances/{OWN_PREFIX}1-x"));
        let foreign = root.path().join("instances/somebody");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&foreign).unwrap();
        write_instance(&own, "tracing_on", "1").unwrap();
        assert_eq!(std::fs::read_to_string(own.join("tracing_on")).unwrap(), "1");
        for (dir, file) in
            [(&foreign, "tracing_on"), (&own, "../somebody/tracing_on"), (&own, "/etc/passwd")]
        {
            assert!(write_instance(dir, file, "1").is_err(), "{file}");
        }
        assert!(!foreign.join("tracing_on").exists());
    }
}
