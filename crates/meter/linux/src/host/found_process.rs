//! The process that works in a directory, such as a server in that of its data.
//!
//! A process and a directory are the same place by device and inode, so that a path of another
//! mount namespace is not mistaken. What another user's process does may be hidden: then the file
//! that holds its id is believed where the process has the owner of the directory.

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::host::Root;

/// Where a process works, and how it is known.
#[derive(Clone, Debug)]
pub struct ProcessPlace {
    /// The directory in which it runs.
    pub dir: PathBuf,
    /// A file in it that it keeps open.
    pub file: String,
    /// A file that holds its id, absolute or below the directory.
    pub pid_file: Option<PathBuf>,
}

impl ProcessPlace {
    /// The process that is there, if one is found.
    pub fn process(&self, root: &Root) -> Option<u32> {
        let dir = metadata(root.real(&self.dir)).ok()?;
        let pid_file = self.pid_file.as_ref();
        let named = pid_file.and_then(|file| root.number::<u32>(self.dir.join(file)));
        if let Some(pid) = named {
            let is_there = match metadata(root.real(format!("/proc/{pid}/cwd"))) {
                Ok(cwd) => is_same(&cwd, &dir),
                Err(_) => metadata(root.real(format!("/proc/{pid}")))
                    .is_ok_and(|process| process.uid() == dir.uid()),
            };
            if is_there {
                return Some(pid);
            }
        }
        let file = metadata(root.real(self.dir.join(&self.file))).ok()?;
        root.names("/proc").iter().filter_map(|name| name.parse().ok()).find(|pid: &u32| {
            metadata(root.real(format!("/proc/{pid}/cwd"))).is_ok_and(|cwd| is_same(&cwd, &dir))
                && holds(root, *pid, &file)
        })
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether a process has a file open: a shell in the directory does not.
fn holds(root: &Root, pid: u32, file: &Metadata) -> bool {
    let open = Path::new("/proc").join(pid.to_string()).join("fd");
    root.names(&open)
        .iter()
        .any(|name| metadata(root.real(open.join(name))).is_ok_and(|opened| is_same(&opened, file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    /// A machine with a directory of data and processes that run in it.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            create_dir_all(machine.0.path().join("data")).unwrap();
            write(machine.0.path().join("data/ibdata1"), "").unwrap();
            machine
        }

        fn process(&self, pid: u32, cwd: Option<&str>, file: Option<&str>) {
            let (dir, of) = (self.0.path(), self.0.path().join(format!("proc/{pid}")));
            create_dir_all(of.join("fd")).unwrap();
            if let Some(cwd) = cwd {
                symlink(dir.join(cwd), of.join("cwd")).unwrap();
            }
            if let Some(file) = file {
                symlink(dir.join(file), of.join("fd/7")).unwrap();
            }
        }

        fn found(&self, pid_file: Option<&str>) -> Option<u32> {
            let place = ProcessPlace {
                dir: "/data".into(),
                file: "ibdata1".to_owned(),
                pid_file: pid_file.map(PathBuf::from),
            };
            place.process(&Root::at(self.0.path()))
        }
    }

    #[test]
    fn the_file_with_the_id_is_believed_only_of_a_process_that_is_there() {
        let machine = Machine::new();
        machine.process(10, Some("data"), None);
        machine.process(11, Some("proc"), None);
        for (text, found) in [("10\n", Some(10)), ("11\n", None), ("12\n", None), ("x", None)] {
            write(machine.0.path().join("data/server.pid"), text).unwrap();
            assert_eq!(machine.found(Some("server.pid")), found, "{text:?}");
        }
        // Where the kernel does not say where it runs, its owner is the directory's.
        machine.process(12, None, None);
        write(machine.0.path().join("data/server.pid"), "12\n").unwrap();
        assert_eq!(machine.found(Some("server.pid")), Some(12));
    }

    #[test]
    fn without_such_a_file_it_is_the_process_that_has_the_data_open() {
        let machine = Machine::new();
        machine.process(20, Some("data"), Some("data"));
        machine.process(21, Some("proc"), Some("data/ibdata1"));
        assert_eq!(machine.found(None), None, "a shell in the directory, and one from elsewhere");
        machine.process(22, Some("data"), Some("data/ibdata1"));
        assert_eq!(machine.found(None), Some(22));
        assert_eq!(machine.found(Some("/run/none.pid")), Some(22));
    }
}
