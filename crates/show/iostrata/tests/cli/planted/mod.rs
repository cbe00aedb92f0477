//! Planted causes: probes of storage in which one thing is known to be wrong, and what they must
//! report about it. Each is a real run of one to two minutes, so that they run with
//! `IOSTRATA_SOAK=1`.
//!
//! A case names its findings with their layers, words that the advice or the texts must hold, and
//! findings that must not be there. Where the cause can be taken away again, the same ground is
//! probed once more, and the findings must be gone.

mod causes;
mod clean;
mod devices;
mod ground;
mod patterns;
mod setting;

use std::path::Path;

use serde_json::Value;

pub use ground::Ground;

use crate::harness::{document, is_soak};

/// What a probe must report about a ground on which one thing is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted<'a> {
    /// Findings that must be there, each with its layer.
    pub found: &'a [(&'a str, &'a str)],
    /// Words that the texts of findings or advice must hold.
    pub words: &'a [&'a str],
    /// Findings, sentences and settings that must not be there.
    pub absent: &'a [&'a str],
}

/// Whether the long form of a case runs here; prints why not.
pub fn runs(test: &str) -> bool {
    if !is_soak() {
        eprintln!("skipped: a real probe takes minutes; IOSTRATA_SOAK=1 runs it");
        return false;
    }
    crate::disk::can_emulate(test)
}

/// Probes a ground; the document.
pub fn probe(ground: &Ground, options: &str) -> Value {
    probe_in(ground, options, None)
}

/// Probes a ground from within a control group, which is given by its directory.
pub fn probe_in(ground: &Ground, options: &str, group: Option<&Path>) -> Value {
    let line = format!("probe {} --json --quiet {options}", ground.dir().display());
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = ground.bench().command(&words);
    if let Some(group) = group {
        command = ground.enter(command, group);
    }
    let document = document(&command.output().unwrap(), "probe");
    eprintln!("{}", told(&document));
    document
}

/// Holds a document against what was planted.
pub fn check(document: &Value, planted: &Planted<'_>) {
    let told = told(document);
    for (id, layer) in planted.found {
        let finding = finding(document, id).unwrap_or_else(|| panic!("no {id} in\n{told}"));
        assert_eq!(finding["layer"], **layer, "{id} in\n{told}");
    }
    for word in planted.words {
        assert!(told.contains(word), "not a word of `{word}` in\n{told}");
    }
    for word in planted.absent {
        assert!(!told.contains(word), "`{word}` in\n{told}");
    }
}

/// The finding with this id.
pub fn finding<'d>(document: &'d Value, id: &str) -> Option<&'d Value> {
    document["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id)
}

/// Every sentence of a document: verdict, findings, losses, advice.
fn told(document: &Value) -> String {
    let mut lines: Vec<String> = Vec::new();
    let all = |name: &str| document[name].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines.extend(all("headline").map(word));
    lines.extend(all("findings").map(|one| {
        format!("{} {} {}: {}", one["kind"], word(&one["id"]), one["layer"], word(&one["text"]))
    }));
    lines.extend(all("losses").map(|one| format!("loss to {}: {}", one["to"], word(&one["text"]))));
    lines.extend(all("advice").map(|one| {
        let (setting, value) = (word(&one["setting"]), word(&one["value"]));
        format!("advice {setting} = {value} ({}): {}", word(&one["where"]), word(&one["text"]))
    }));
    lines.join("\n")
}

#[test]
fn a_document_that_says_something_else_is_caught() {
    let document = serde_json::json!({
        "headline": ["It loses."], "losses": [], "advice": [],
        "findings": [{"id": "x", "kind": "loss", "layer": "device", "text": "lost"}],
    });
    let holds = |planted: Planted<'_>| std::panic::catch_unwind(|| check(&document, &planted));
    let none = Planted::default();
    assert!(holds(Planted { found: &[("x", "device")], words: &["lost"], ..none }).is_ok());
    assert!(holds(Planted { found: &[("x", "limit")], ..none }).is_err());
    assert!(holds(Planted { found: &[("y", "device")], ..none }).is_err());
    assert!(holds(Planted { words: &["found"], ..none }).is_err());
    assert!(holds(Planted { absent: &["x"], ..none }).is_err());
}
