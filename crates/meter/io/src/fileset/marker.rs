//! The mark of a file that iostrata made and filled completely.
//!
//! Layout: one line of text, `iostrata 1 <bytes> <device> <inode> <fill>`, in the extended
//! attribute `user.iostrata`; where the file system has none, in a hidden file `.NAME.iostrata`
//! beside it. Device and inode keep a copy from passing as the original.
//! Invariant: set only after the last byte was written and flushed, and taken away before the file
//! is changed in size; a file whose size or allocation does not match its mark is not used again.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;

use crate::fileset::plan::{Fill, directory_of};

const ATTRIBUTE: &str = "user.iostrata";
const LONGEST_BYTES: usize = 256;

/// Whether iostrata made this very file, complete or not any more.
pub(super) fn is_ours(path: &Path) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    read(path).is_some_and(|text| {
        let mut words = text.split(' ');
        let head = (words.next(), words.next());
        let identity = (words.nth(1), words.next());
        let (device, inode) = (meta.dev().to_string(), meta.ino().to_string());
        head == (Some("iostrata"), Some("1")) && identity == (Some(&device), Some(&inode))
    })
}

/// Whether the file is ours, has the right size and fill, and nothing of it is missing.
pub(super) fn is_complete(path: &Path, bytes: u64, fill: Fill) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    // A file that was truncated and extended again, or lost blocks, has fewer sectors than bytes.
    let allocated = meta.blocks() * 512 >= meta.len();
    let text = text(bytes, &meta, fill);
    meta.len() == bytes && allocated && read(path).is_some_and(|found| found == text)
}

/// Sets the mark and makes it durable.
pub(super) fn set(path: &Path, file: &File, bytes: u64, fill: Fill) -> io::Result<()> {
    let text = text(bytes, &file.metadata()?, fill);
    match fsetxattr(file.as_fd(), ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) => {}
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::NOSPC) => fs::write(beside(path), text)?,
        Err(errno) => return Err(errno.into()),
    }
    file.sync_all()
}

/// Takes the mark away.
pub(super) fn clear(path: &Path, file: &File) -> io::Result<()> {
    match fremovexattr(file.as_fd(), ATTRIBUTE) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    match fs::remove_file(beside(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn text(bytes: u64, meta: &fs::Metadata, fill: Fill) -> String {
    let fill = match fill {
        Fill::Written => "written",
        Fill::Fallocated => "fallocated",
        Fill::Empty => "empty",
    };
    format!("iostrata 1 {bytes} {} {} {fill}", meta.dev(), meta.ino())
}

fn read(path: &Path) -> Option<String> {
    let mut value = [0; LONGEST_BYTES];
    match getxattr(path, ATTRIBUTE, &mut value) {
        Ok(length) => String::from_utf8(value[..length].to_vec()).ok(),
        Err(_) => fs::read_to_string(beside(path)).ok(),
    }
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    directory_of(path).join(format!(".{name}.iostrata"))
}
