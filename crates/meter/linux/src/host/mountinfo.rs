//! `/proc/self/mountinfo`, line by line (proc_pid_mountinfo(5)).
//!
//! Invariant: a line that does not parse is left out; the order of the file is kept.

use std::path::PathBuf;

use iostrata_run::host::DeviceNumber;

use crate::host::Root;

/// One mount, as seen by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Number of the mount.
    pub id: u64,
    /// Device number of the file system.
    pub device: DeviceNumber,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of this mount.
    pub options: Vec<String>,
    /// Type of the file system.
    pub file_system: String,
    /// What was mounted.
    pub source: String,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

impl MountEntry {
    /// The value of a file-system option `name=value`.
    pub(crate) fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether a file-system option is set.
    pub(crate) fn has_super_option(&self, name: &str) -> bool {
        self.super_options.iter().any(|option| option == name)
    }
}

/// All mounts that this process sees, in the order in which they were made.
pub fn mounts(root: &Root) -> Vec<MountEntry> {
    root.text("/proc/self/mountinfo").map(|text| parse(&text)).unwrap_or_default()
}

/// Parses the text of mountinfo.
pub(crate) fn parse(text: &str) -> Vec<MountEntry> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<MountEntry> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let _parent = words.next()?;
    let device = words.next()?.parse().ok()?;
    let root = unescape(words.next()?);
    let mount_point = PathBuf::from(unescape(words.next()?));
    let options = options(words.next()?);
    // Any number of optional fields, ended by a lone dash.
    words.by_ref().find(|word| *word == "-")?;
    let file_system = unescape(words.next()?);
    let source = unescape(words.next()?);
    let super_options = words.next().map(self::options).unwrap_or_default();
    Some(MountEntry { id, device, root, mount_point, options, file_system, source, super_options })
}

/// Commas within a value are escaped in octal by the kernel, so every plain one separates.
fn options(word: &str) -> Vec<String> {
    word.split(',').filter(|option| !option.is_empty()).map(unescape).collect()
}

/// Undoes the kernel's octal escapes of blank, tab, newline, backslash and hash.
fn unescape(word: &str) -> String {
    let bytes = word.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1..at + 4).and_then(octal)) {
            (b'\\', Some(code)) => {
                out.push(code);
                at += 4;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
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
        let entry = parse_line(line).unwrap();
        assert_eq!(entry.id, 36);
        assert_eq!(entry.device.to_string(), "98:0");
        assert_eq!(entry.mount_point, PathBuf::from("/mnt/with blank"));
        assert_eq!(entry.options, ["rw", "noatime"]);
        assert_eq!(entry.file_system, "ext4");
        assert_eq!(entry.super_option("errors"), Some("continue"));
        assert!(entry.has_super_option("rw") && !entry.has_super_option("ro"));
    }

    #[test]
    fn an_escaped_comma_does_not_split() {
        let line = r"1 1 0:9 / /m rw - overlay overlay rw,lowerdir=/a\134\054b:/c,upperdir=/u";
        let entry = parse_line(line).unwrap();
        assert_eq!(entry.super_option("lowerdir"), Some(r"/a\,b:/c"));
        assert_eq!(entry.super_option("upperdir"), Some("/u"));
    }

    #[test]
    fn broken_lines_are_left_out() {
        let text = "junk\n1 2 8:1 / / rw\n36 35 8:1 / / rw - xfs /dev/sda1 rw\n";
        assert_eq!(parse(text).len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}") {
            parse(&text);
        }

        #[test]
        fn any_fields_are_survived(words in proptest::collection::vec("[0-9a-z/:,=\\\\-]{0,9}", 0..14)) {
            parse(&words.join(" "));
        }
    }
}
