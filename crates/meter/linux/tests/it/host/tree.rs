//! Builds a directory that looks like `/` of some machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use iostrata_linux::host::{Location, Root};
use tempfile::TempDir;

/// A machine under construction.
pub struct Tree {
    dir: TempDir,
    mounts: String,
    placed: Vec<(PathBuf, Location)>,
}

impl Tree {
    pub fn new() -> Self {
        let tree =
            Self { dir: tempfile::tempdir().unwrap(), mounts: String::new(), placed: Vec::new() };
        tree.file("/proc/sys/kernel/osrelease", "6.18.1-test\n")
    }

    pub fn root(&self) -> Root {
        let root = Root::at(self.dir.path());
        self.placed.iter().fold(root, |root, (path, location)| root.placing(path, location.clone()))
    }

    fn real(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub fn file(self, path: &str, text: &str) -> Self {
        self.rewrite(path, text);
        self
    }

    /// Overwrites a file in place, as a counter changes.
    pub fn rewrite(&self, path: &str, text: &str) {
        let real = self.real(path);
        fs::create_dir_all(real.parent().unwrap()).unwrap();
        fs::write(real, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let real = self.real(path);
        if real.is_dir() { fs::remove_dir_all(real) } else { fs::remove_file(real) }.unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let link = self.real(path);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(self.real(target), link).unwrap();
    }

    /// A line of mountinfo without its number and parent, which are made up.
    pub fn mount(mut self, line: &str) -> Self {
        let id = 100 + self.mounts.lines().count();
        self.mounts.push_str(&format!("{id} 1 {line}\n"));
        let mounts = self.mounts.clone();
        self.file("/proc/self/mountinfo", &mounts)
    }

    /// What stat answers for a path and everything below it.
    pub fn place(mut self, path: &str, number: &str) -> Self {
        let location = Location::new(path, number.parse().unwrap());
        self.placed.push((PathBuf::from(path), location));
        self
    }

    /// The same with a size, by which file systems are distinguished.
    pub fn place_sized(mut self, path: &str, number: &str, total_bytes: u64, inodes: u64) -> Self {
        let mut location = Location::new(path, number.parse().unwrap());
        location.total_bytes = Some(total_bytes);
        location.inodes_total = Some(inodes);
        self.placed.push((PathBuf::from(path), location));
        self
    }

    pub fn place_device(mut self, path: &str, number: &str) -> Self {
        let mut location = Location::new(path, "0:6".parse().unwrap());
        location.block_device = Some(number.parse().unwrap());
        self.placed.push((PathBuf::from(path), location));
        self
    }

    /// A whole device of 1 GiB with a queue.
    pub fn disk(self, name: &str, number: &str) -> Self {
        let dir = device_dir(name);
        self.register(name, number, &dir)
            .file(&format!("{dir}/queue/scheduler"), "none [mq-deadline] bfq\n")
            .file(&format!("{dir}/queue/nr_requests"), "256\n")
            .file(&format!("{dir}/queue/write_cache"), "write back\n")
            .file(&format!("{dir}/queue/rotational"), "0\n")
            .file(&format!("{dir}/queue/iostats"), "1\n")
            .file(&format!("{dir}/stat"), "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
    }

    pub fn partition(self, disk: &str, index: u32, number: &str) -> Self {
        let name = format!("{disk}{index}");
        let dir = format!("{}/{name}", device_dir(disk));
        self.register(&name, number, &dir)
            .file(&format!("{dir}/partition"), &format!("{index}\n"))
            .file(&format!("{dir}/start"), "2048\n")
    }

    fn register(self, name: &str, number: &str, dir: &str) -> Self {
        let tree = self
            .file(&format!("{dir}/dev"), &format!("{number}\n"))
            .file(&format!("{dir}/size"), "2097152\n");
        tree.link(&format!("/sys/class/block/{name}"), dir);
        tree.link(&format!("/sys/dev/block/{number}"), dir);
        if Path::new(dir).parent().is_some_and(|above| above.ends_with("block")) {
            tree.link(&format!("/sys/block/{name}"), dir);
        }
        tree
    }

    /// Puts one device on top of another.
    pub fn on(self, above: &str, below: &str) -> Self {
        let below_dir = fs::canonicalize(self.real(&format!("/sys/class/block/{below}"))).unwrap();
        let slaves = self.real(&format!("{}/slaves", device_dir(above)));
        fs::create_dir_all(&slaves).unwrap();
        symlink(&below_dir, slaves.join(below)).unwrap();
        let holders = below_dir.join("holders");
        fs::create_dir_all(&holders).unwrap();
        symlink(self.real(&device_dir(above)), holders.join(above)).unwrap();
        self
    }

    pub fn mapped(self, name: &str, number: &str, mapper_name: &str, identifier: &str) -> Self {
        let dir = device_dir(name);
        self.disk(name, number)
            .file(&format!("{dir}/dm/name"), mapper_name)
            .file(&format!("{dir}/dm/uuid"), identifier)
    }
}

pub fn device_dir(name: &str) -> String {
    format!("/sys/devices/pci0000:00/0000:00:01.0/virtio0/block/{name}")
}
