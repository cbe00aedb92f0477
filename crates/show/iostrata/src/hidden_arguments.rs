//! Passwords in the argument vector, which all users of the machine can read.
//!
//! Invariant: arguments keep their length, so that nothing else of the vector moves. Passwords are
//! read before they are hidden.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;

/// Where fields of `/proc/self/stat` stand, counted from the one behind the program's name.
const ARG_START: usize = 45;

/// Overwrites passwords in this process's argument vector.
pub fn hide() {
    // What cannot be hidden is as visible as the user has made it.
    let _stays_visible = try_hide();
}

fn try_hide() -> io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let start = fields.split(' ').nth(ARG_START).and_then(|text| text.parse::<u64>().ok());
    let start = start.ok_or(io::ErrorKind::InvalidData)?;
    let vector = std::fs::read("/proc/self/cmdline")?;
    let mut memory = None;
    for (at, stars) in stars(&vector) {
        let memory = match &memory {
            Some(memory) => memory,
            None => memory.insert(OpenOptions::new().write(true).open("/proc/self/mem")?),
        };
        memory.write_all_at(&stars, start + at as u64)?;
    }
    Ok(())
}

/// What to write over an argument vector, and where.
fn stars(vector: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let words: Vec<String> = vector
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let mut at = 0;
    let mut all = Vec::new();
    for (word, scrubbed) in words.iter().zip(iostrata_run::scrubbed(&words)) {
        let (given, kept) = (word.as_bytes(), scrubbed.as_bytes());
        let same = |(a, b): &(&u8, &u8)| a == b;
        let before = given.iter().zip(kept).take_while(same).count();
        let after = given[before..].iter().rev().zip(kept[before..].iter().rev());
        let after = after.take_while(same).count();
        let hidden = given.len() - before - after;
        if given != kept && hidden > 0 {
            all.push((at + before, vec![b'*'; hidden]));
        }
        at += given.len() + 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_become_stars_of_their_length() {
        let vector = b"x\0--target\0mysql://u:hunter2@h/d\0--json\0".to_vec();
        let mut hidden = vector.clone();
        for (at, stars) in stars(&vector) {
            hidden[at..at + stars.len()].copy_from_slice(&stars);
        }
        assert_eq!(hidden, b"x\0--target\0mysql://u:*******@h/d\0--json\0");
        assert_eq!(stars(b"x\0--target\0mysql://u@h/d\0"), []);
    }
}
