//! `unsafe` stays in the files that the table lists.
//!
//! That every block says why it is sound is clippy's rule (`undocumented_unsafe_blocks`).

use std::path::Path;

use super::source::SourceFile;
use super::tables::UNSAFE_FILES;
use super::{Breach, rust};

/// No `unsafe` outside the listed files, tests included.
pub fn judge(source: &SourceFile) -> Vec<Breach> {
    if is_listed(&source.path) {
        return Vec::new();
    }
    let lines = source.code.lines().enumerate();
    lines
        .filter(|(_, line)| rust::has_word(line, "unsafe") || line.contains("allow(unsafe_code)"))
        .map(|(at, _)| {
            let text = "unsafe; move it to a listed file or list this one in xtask's tables";
            Breach::new(&source.path, at + 1, text)
        })
        .collect()
}

/// Listed files that are gone or have become safe.
pub fn stale(sources: &[SourceFile]) -> Vec<Breach> {
    let uses = |path: &Path| {
        let mut sources = sources.iter().filter(|source| source.path == path);
        sources.any(|source| rust::has_word(&source.code, "unsafe"))
    };
    let unused = UNSAFE_FILES.iter().map(Path::new).filter(|path| !uses(path));
    unused
        .map(|path| Breach::new(path, 0, "has no unsafe; take it off the list in xtask's tables"))
        .collect()
}

fn is_listed(path: &Path) -> bool {
    UNSAFE_FILES.iter().any(|listed| path == Path::new(listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str) -> SourceFile {
        SourceFile::read(Path::new(path), "// unsafe\nfn a() { unsafe { b() } }\n")
    }

    #[test]
    fn unsafe_is_named_outside_the_list() {
        let found = judge(&source("crates/base/stats/src/a.rs"));
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert!(judge(&source(UNSAFE_FILES[0])).is_empty());
    }

    #[test]
    fn the_list_holds_nothing_else() {
        let sources: Vec<SourceFile> = UNSAFE_FILES.iter().map(|path| source(path)).collect();
        assert!(stale(&sources).is_empty());
        assert_eq!(stale(&sources[1..]).len(), 1);
    }
}
