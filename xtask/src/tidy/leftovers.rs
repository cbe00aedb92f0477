//! What was meant to be done later.

use super::source::SourceFile;
use super::{Breach, rust};

/// Half-done code that compiles, in tests too, and notes to oneself in comments.
pub fn judge(source: &SourceFile) -> Vec<Breach> {
    // Split, so that this file does not find itself.
    let notes = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];
    let calls = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
    let mut breaches = Vec::new();
    for (at, (line, text)) in source.code.lines().zip(source.text.lines()).enumerate() {
        let call = calls.into_iter().find(|call| rust::has_word(line, call));
        let note = notes.into_iter().find(|note| rust::has_word(text, note));
        if let Some(word) = call.or(note) {
            breaches.push(Breach::new(
                &source.path,
                at + 1,
                format!("{word}: finish or remove it"),
            ));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn leftovers_are_named() {
        let found =
            |text: &str| judge(&SourceFile::read(Path::new("crates/a/b/src/c.rs"), text)).len();
        for text in ["todo!()", "dbg!(a)", "#[ignore]", "#[ignore = \"slow\"]"] {
            assert_eq!(found(text), 1, "{text}");
        }
        assert_eq!(found(concat!("// FIX", "ME later")), 1);
        assert_eq!(found("// todo! is a macro\nlet s = \"dbg!\";"), 0);
    }
}
