//! `cargo xtask gallery`: takes runs of studies into the gallery and makes its entries from them.
//!
//! A run is kept as a directory that `iostrata report` reads, reduced to what an entry is made of:
//! no events, no series of requests, no profiles. Text and pictures are made by the test that holds
//! them, so that both cannot part. Entries without a kept run stay as they are, and are named.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::args::Args;
use crate::workspace;

const MANIFEST: &str = "run.json";
const RESULT: &str = "result.json";
/// The test that makes and holds the entries.
const TEST: &str = "report::gallery::";

/// Keeps the runs that are named and makes every entry again.
///
/// # Errors
/// When a run is none of a study that ended, or the entries cannot be made.
pub fn run(mut args: Args) -> Result<bool> {
    let gallery = workspace::root().join("docs/gallery");
    while let Some(word) = args.word() {
        if word.starts_with("--") {
            bail!("{word} is not known here: name run directories of studies");
        }
        let kept = keep(Path::new(&word), &gallery.join("runs"))?;
        println!("kept {word} as {}", kept.display());
    }
    let mut cargo = workspace::cargo(&workspace::root());
    cargo.args(["test", "--quiet", "--package", "iostrata-show", "--test", "it", TEST]);
    let is_made = cargo.env("UPDATE_TEXTS", "1").status()?.success();
    let text = fs::read_to_string(gallery.join("README.md"))?;
    for name in without_runs(&text, &names(&gallery.join("runs"))?) {
        println!("{name}: no run of it is kept, its text and picture stay as they are");
    }
    Ok(is_made)
}

/// The names of the entries that have no kept run.
fn without_runs(text: &str, kept: &[String]) -> Vec<String> {
    let heads = text.lines().filter_map(|line| line.strip_prefix("## `"));
    let names = heads.filter_map(|head| head.split_once('`')).map(|(name, _)| name.to_owned());
    names.filter(|name| !kept.contains(name)).collect()
}

/// The studies of which a run is kept.
fn names(runs: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(runs).with_context(|| runs.display().to_string())? {
        let result = read(&entry?.path().join(RESULT))?;
        names.extend(result["study"].as_str().map(str::to_owned));
    }
    Ok(names)
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Copies a run, reduced, to a directory named by its study and its start.
fn keep(run: &Path, runs: &Path) -> Result<PathBuf> {
    let (mut manifest, mut result) = (read(&run.join(MANIFEST))?, read(&run.join(RESULT))?);
    if manifest["kind"] != "study" {
        bail!("{}: a run of {}, no study", run.display(), manifest["kind"]);
    }
    let name = result["study"].as_str().context("the result names no study")?.to_owned();
    let start = manifest["started_at"].as_str().context("the manifest has no start")?;
    let start: String = start.chars().filter(char::is_ascii_digit).take(12).collect();
    reduce(&mut manifest, &mut result);
    let dir = runs.join(format!("{name}-{start}"));
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    for (file, value) in [(MANIFEST, &manifest), (RESULT, &result)] {
        fs::write(dir.join(file), serde_json::to_string_pretty(value)? + "\n")?;
    }
    Ok(dir)
}

/// Takes out what no entry shows: the plan, profiles, traces, effects, what was changed.
fn reduce(manifest: &mut Value, result: &mut Value) {
    for name in ["host", "plan", "study"] {
        manifest[name] = Value::Null;
    }
    for name in ["effects", "interactions", "queue_changes", "findings", "changes", "layers"] {
        result[name] = json!([]);
    }
    if let Some(words) = manifest["arguments"].as_array_mut()
        && let Some(at) = words.iter().position(|word| word == "--out")
    {
        words.drain(at..words.len().min(at + 2));
    }
    result["method"] = json!({});
    result["report"] = Value::Null;
    // Of the machine what an entry names; where its files were is left out.
    let host = &mut result["host"];
    if let Some(kernel) = host["machine"]["kernel"].as_str() {
        host["machine"]["kernel"] = json!(kernel.split('-').next());
    }
    for name in ["path", "mount_point", "mount_source"] {
        host["path"][name] = json!("");
    }
    for part in ["machine", "path"] {
        for value in host[part].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            value.as_array_mut().into_iter().for_each(Vec::clear);
        }
    }
    if let Some(axes) = result["axes"].as_array_mut() {
        axes.retain(|axis| !axis["response"].is_null());
    }
    for point in result["points"].as_array_mut().into_iter().flatten() {
        for name in ["profile", "latency_by_layer", "emulated", "device", "cpu"] {
            point[name] = Value::Null;
        }
        for name in ["read", "write", "sync"] {
            point.as_object_mut().map(|point| point.remove(name));
        }
        point["queue"] = json!([]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_a_run_are_named() {
        let text = "# Gallery\n## `flushing`: a policy\n## `limits`: a volume\n### `other`\n";
        assert_eq!(without_runs(text, &["limits".to_owned()]), ["flushing"]);
    }

    #[test]
    fn what_no_entry_shows_is_not_kept() {
        let axis = |response: Value| json!({ "factor": "workers", "response": response });
        let mut result = json!({
            "study": "limits",
            "host": {
                "machine": { "kernel": "6.18.4-made", "cpus": 2 },
                "path": { "path": "/somewhere", "devices": [{ "name": "vda" }], "kind": "disk" },
            },
            "effects": [1],
            "axes": [axis(Value::Null), axis(json!({ "knee": 90 }))],
            "points": [{ "id": "a", "value": 3.5, "profile": { "stacks": [] }, "read": {} }],
        });
        let mut manifest = json!({ "plan": [1], "arguments": ["study", "--out", "/place", "-q"] });
        reduce(&mut manifest, &mut result);
        assert_eq!(manifest["plan"], Value::Null);
        assert_eq!(manifest["arguments"], json!(["study", "-q"]));
        assert_eq!(
            (&result["effects"], &result["axes"]),
            (&json!([]), &json!([axis(json!({ "knee": 90 }))]))
        );
        assert_eq!(result["host"]["machine"], json!({ "kernel": "6.18.4", "cpus": 2 }));
        let path = &result["host"]["path"];
        assert_eq!((&path["path"], &path["devices"]), (&json!(""), &json!([])));
        assert_eq!(path["kind"], "disk");
        let point = &result["points"][0];
        assert_eq!((&point["value"], &point["profile"]), (&json!(3.5), &Value::Null));
        assert!(point.get("read").is_none() && point["id"] == "a");
    }
}
