//! Mounts as this process sees them: `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
//!
//! Invariant: a line that does not parse is left out; the order of the file is kept, in which a
//! later mount covers an earlier one at the same place.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::{fs, io};

/// One mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount.
    pub id: u64,
    /// Number of the file system's device, `major:minor`, as sysfs has it.
    pub device: String,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Where it is mounted.
    pub at: PathBuf,
    /// Options of the mount.
    pub options: Vec<String>,
    /// Type of the file system.
    pub kind: String,
    /// What was mounted.
    pub source: String,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

impl Mount {
    /// Whether a program serves it.
    pub fn is_fuse(&self) -> bool {
        matches!(self.kind.as_str(), "fuse" | "fuseblk") || self.kind.starts_with("fuse.")
    }

    /// All options, each once.
    pub fn all_options(&self) -> Vec<String> {
        let mut all = self.options.clone();
        for option in &self.super_options {
            if !all.contains(option) {
                all.push(option.clone());
            }
        }
        all
    }

    /// The value of a file-system option `name=value`.
    pub fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether a file-system option is set.
    pub fn has_super_option(&self, name: &str) -> bool {
        self.super_options.iter().any(|option| option == name)
    }
}

/// All mounts that this process sees.
///
/// # Errors
/// When the kernel does not show them.
pub fn mounts() -> io::Result<Vec<Mount>> {
    fs::read_to_string("/proc/self/mountinfo").map(|text| parse_mounts(&text))
}

/// Parses the text of mountinfo.
pub fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let _parent = words.next()?;
    let device = words.next()?.to_owned();
    let root = text_of(words.next()?);
    let at = PathBuf::from(unescaped(words.next()?));
    let options = options(words.next()?);
    // Any number of optional fields, ended by a lone dash.
    words.by_ref().find(|word| *word == "-")?;
    let (kind, source) = (text_of(words.next()?), text_of(words.next()?));
    let super_options = words.next().map(self::options).unwrap_or_default();
    Some(Mount { id, device, root, at, options, kind, source, super_options })
}

/// Commas within a value are escaped in octal by the kernel, so every plain one separates.
fn options(word: &str) -> Vec<String> {
    word.split(',').filter(|option| !option.is_empty()).map(text_of).collect()
}

fn text_of(word: &str) -> String {
    unescaped(word).to_string_lossy().into_owned()
}

/// Undoes the kernel's octal escapes of blank, tab, newline, backslash and hash.
fn unescaped(word: &str) -> OsString {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match after.get(..3).and_then(octal) {
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

fn octal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0u8, |code, digit| match digit {
        b'0'..=b'7' => code.checked_mul(8)?.checked_add(digit - b'0'),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_with_optional_fields_and_escapes() {
        let line = r"36 35 98:0 /sub /mnt/with\040blank rw,noatime shared:1 master:2 - ext4 /dev/root rw,errors=continue";
        let mount = parse_line(line).unwrap();
        assert_eq!((mount.id, mount.device.as_str(), mount.root.as_str()), (36, "98:0", "/sub"));
        assert_eq!(mount.at, PathBuf::from("/mnt/with blank"));
        assert_eq!(mount.options, ["rw", "noatime"]);
        assert_eq!((mount.kind.as_str(), mount.source.as_str()), ("ext4", "/dev/root"));
        assert_eq!(mount.super_options, ["rw", "errors=continue"]);
        assert_eq!(mount.super_option("errors"), Some("continue"));
        assert!(mount.has_super_option("rw") && !mount.has_super_option("ro"));
    }

    #[test]
    fn an_escaped_comma_does_not_split() {
        let line = r"1 1 0:9 / /m rw - overlay overlay rw,lowerdir=/a\134\054b:/c,upperdir=/u";
        let options = parse_line(line).unwrap().super_options;
        assert_eq!(options, ["rw", r"lowerdir=/a\,b:/c", "upperdir=/u"]);
    }

    #[test]
    fn broken_lines_are_left_out() {
        let text = "junk\n1 2 8:1 / / rw\n36 35 8:1 / / rw - xfs /dev/sda1 rw\n";
        assert_eq!(parse_mounts(text).len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}") {
            parse_mounts(&text);
        }

        #[test]
        fn any_fields_are_survived(words in proptest::collection::vec("[0-9a-z/:,=\\\\-]{0,9}", 0..14)) {
            parse_mounts(&words.join(" "));
        }
    }
}
