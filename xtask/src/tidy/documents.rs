//! Markdown files and manifests.

use std::path::Path;

use super::Breach;

/// A document says first what it is.
pub fn judge(path: &Path, text: &str) -> Vec<Breach> {
    let has_title = text
        .lines()
        .next()
        .is_some_and(|line| line.strip_prefix("# ").is_some_and(|title| !title.trim().is_empty()));
    if has_title {
        return Vec::new();
    }
    vec![Breach::new(path, 1, "no title; begin with \"# Title\"")]
}

/// Every package lives under the lints of the workspace.
pub fn judge_manifest(path: &Path, text: &str) -> Vec<Breach> {
    let inherits = text.contains("[lints]\nworkspace = true");
    if !text.contains("[package]") || inherits {
        return Vec::new();
    }
    vec![Breach::new(path, 0, "not under the workspace's lints; add [lints] workspace = true")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_a_title() {
        let path = Path::new("a.md");
        assert!(judge(path, "# A\ntext\n").is_empty());
        for text in ["", "text", "## A\n", "#\n", "\n# A\n"] {
            assert_eq!(judge(path, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn manifests_inherit_the_lints() {
        let path = Path::new("Cargo.toml");
        assert!(judge_manifest(path, "[package]\n[lints]\nworkspace = true\n").is_empty());
        assert!(judge_manifest(path, "[workspace]\n").is_empty());
        assert_eq!(judge_manifest(path, "[package]\n").len(), 1);
    }
}
