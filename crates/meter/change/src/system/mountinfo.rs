//! `/proc/self/mountinfo`, line by line (proc_pid_mountinfo(5)).
//!
//! Invariant: a line that does not parse is left out; the order of the file is kept.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::seen::Mounted;

pub(super) fn parse(text: &str) -> Vec<Mounted> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mounted> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, at, options) = (mount.next()?, mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let (kind, source) = (file_system.next()?, file_system.next()?);
    let list =
        |text: &str| text.split(',').map(|one| plain(one).to_string_lossy().into()).collect();
    Some(Mounted {
        at: PathBuf::from(plain(at)),
        root: plain(root).to_string_lossy().into(),
        kind: kind.to_owned(),
        source: plain(source).to_string_lossy().into(),
        options: list(options),
        super_options: list(file_system.next().unwrap_or_default()),
    })
}

/// Blanks and the like are written as a backslash and three octal digits.
fn plain(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if first == b'\\' => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let text =
            "junk\n36 35 7:3 / /mnt/with\\040blank rw,noatime shared:1 - xfs /dev/loop3 rw,ssd\n";
        let found = parse(text);
        assert_eq!(found.len(), 1);
        let mount = &found[0];
        assert_eq!(mount.at, PathBuf::from("/mnt/with blank"));
        assert_eq!((mount.kind.as_str(), mount.source.as_str()), ("xfs", "/dev/loop3"));
        assert_eq!(mount.all_options(), ["rw", "noatime", "ssd"]);
    }
}
