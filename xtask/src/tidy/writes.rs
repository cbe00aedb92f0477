//! The system is looked at, not altered, but by the one crate that keeps a journal of it.
//!
//! Two simple signs: a crate that only observes opens nothing for writing, and no file that names
//! `/sys` or `/proc` also writes, outside of that crate. A path that is put together elsewhere
//! escapes this rule.

use super::source::SourceFile;
use super::tables::{ALTERING, READ_ONLY};
use super::{Breach, rust};

const WRITING: [&str; 6] = [
    "fs::write",
    "File::create",
    "File::create_new",
    "write(true)",
    "append(true)",
    "OFlags::WRONLY",
];

/// The one file that writes into this process's own memory.
const OWN_MEMORY: &str = "crates/show/iostrata/src/hidden_arguments.rs";

/// Writes where only looking is allowed.
pub fn judge(source: &SourceFile) -> Vec<Breach> {
    let is_own = source.path.ends_with(OWN_MEMORY);
    let names_system = source.literals.iter().any(|literal| {
        !is_own
            && !source.is_test(literal.line)
            && (literal.text.starts_with("/sys") || literal.text.starts_with("/proc"))
    });
    let text = if READ_ONLY.contains(&source.crate_name()) {
        "this crate only observes"
    } else if names_system && !ALTERING.contains(&source.crate_name()) {
        "this file names /sys or /proc; only the crate change may alter the system"
    } else {
        return Vec::new();
    };
    let writes = |line: &str| WRITING.iter().any(|word| rust::has_word(line, word));
    source
        .lines()
        .filter(|(_, line)| writes(line))
        .map(|(number, _)| Breach::new(&source.path, number, format!("opens to write: {text}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn breaches(path: &str, text: &str) -> usize {
        judge(&SourceFile::read(Path::new(path), text)).len()
    }

    #[test]
    fn writers_do_not_name_the_system() {
        let writes = "fn a() { fs::write(p, b); }\n";
        let names = "const P: &str = \"/sys/block\";\n";
        assert_eq!(breaches("crates/meter/io/src/a.rs", writes), 0);
        assert_eq!(breaches("crates/meter/io/src/a.rs", names), 0);
        assert_eq!(breaches("crates/meter/io/src/a.rs", &format!("{names}{writes}")), 1);
        assert_eq!(breaches("crates/meter/change/src/a.rs", &format!("{names}{writes}")), 0);
    }

    #[test]
    fn the_observer_never_writes() {
        let text = "fn a() { OpenOptions::new().write(true); }\n";
        assert_eq!(breaches("crates/meter/linux/src/a.rs", text), 1);
        let test = format!("#[cfg(test)]\nmod t {{\n{text}}}\n");
        assert_eq!(breaches("crates/meter/linux/src/a.rs", &test), 0);
    }
}
