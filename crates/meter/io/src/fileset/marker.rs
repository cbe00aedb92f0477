//! The mark of a file that iostrata made: filled completely and kept, or to go with its run.
//!
//! Layout: one line of text in the extended attribute `user.iostrata`; where the file system has
//! none, in a hidden file `.NAME.iostrata` beside it. A kept file has
//! `iostrata 1 <bytes> <device> <inode> <fill>`, one that goes with its run
//! `iostrata-temporary 1 <inode> <born_us> <owner>`. The inode keeps a copy from passing as the
//! original, and its birth a later file of the same inode.
//! Invariant: the mark of a kept file is set only after the last byte was written and flushed, and
//! taken away before the file is changed in size; a file whose size or allocation does not match
//! its mark is not used again. A temporary file is marked before its first byte is written.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

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
    write(path, file, &text(bytes, &file.metadata()?, fill))?;
    file.sync_all()
}

/// Marks a file that was just made as one that goes with the run of `owner`.
pub(super) fn set_temporary(path: &Path, file: &File, owner: &str) -> io::Result<()> {
    write(path, file, &temporary(&file.metadata()?, owner))
}

/// Whether `owner` made this very file, and it is not to be kept.
pub(super) fn is_temporary_of(path: &Path, meta: &fs::Metadata, owner: &str) -> bool {
    meta.is_file() && read(path).is_some_and(|found| found == temporary(meta, owner))
}

/// Whether the file has any mark.
pub(super) fn is_there(path: &Path) -> bool {
    read(path).is_some()
}

/// Removes the hidden file that holds the mark where the file system has no attributes.
pub(super) fn remove_beside(path: &Path) -> io::Result<()> {
    match fs::remove_file(beside(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes the mark away.
pub(super) fn clear(path: &Path, file: &File) -> io::Result<()> {
    match fremovexattr(file.as_fd(), ATTRIBUTE) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    remove_beside(path)
}

fn text(bytes: u64, meta: &fs::Metadata, fill: Fill) -> String {
    let fill = match fill {
        Fill::Written => "written",
        Fill::Fallocated => "fallocated",
        Fill::Empty => "empty",
    };
    format!("iostrata 1 {bytes} {} {} {fill}", meta.dev(), meta.ino())
}

fn temporary(meta: &fs::Metadata, owner: &str) -> String {
    format!("iostrata-temporary 1 {} {} {owner}", meta.ino(), born_us(meta).unwrap_or(0))
}

/// When a file was made, where the file system says.
pub(super) fn born_us(meta: &fs::Metadata) -> Option<u64> {
    let born = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(born.as_micros() as u64)
}

fn write(path: &Path, file: &File, text: &str) -> io::Result<()> {
    match fsetxattr(file.as_fd(), ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::NOSPC) => {
            // An older mark would be found first.
            clear(path, file)?;
            fs::write(beside(path), text)
        }
        Err(errno) => Err(errno.into()),
    }
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
