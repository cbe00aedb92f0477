//! The programs that the documents show are those that are compiled here, and they run.

#[allow(dead_code)] // its `main`
#[path = "../../examples/hello.rs"]
mod hello;

#[path = "../../examples/own_disk.rs"]
mod own_disk;

#[path = "../../examples/transactions.rs"]
mod transactions;

const EXAMPLE: &str = include_str!("../../examples/hello.rs");
const README: &str = include_str!("../../../../../README.md");

/// Far more than a first program should write.
const BYTES_MAX: u64 = 64 << 20;

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} behind {start:?}")).0
}

#[test]
fn readme_shows_the_example() {
    let shown = between(README, "```rust\n", "```");
    let is = between(EXAMPLE, "from here on.\n\n", "// README.md");
    assert!(shown == is, "README.md shows:\n{shown}\nthe example is:\n{is}");
}

#[test]
fn the_example_runs_twice_and_writes_little() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("cities");
    for _ in 0..2 {
        hello::hello(&directory).unwrap();
    }
    let files = std::fs::read_dir(&directory).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < BYTES_MAX, "{bytes} bytes for two rows");
}

#[test]
fn a_disk_of_ones_own_is_written_with_this_crate_alone() {
    own_disk::main().unwrap();
    let imports = include_str!("../../examples/own_disk.rs").lines();
    let foreign = |line: &&str| line.starts_with("use ") && !line.starts_with("use std::");
    assert!(imports.filter(foreign).all(|line| line.starts_with("use iostrata_engine::")));
}

#[test]
fn the_guide_shows_the_examples_of_transactions() {
    let example = without_indents(include_str!("../../examples/transactions.rs"));
    let guide = include_str!("../../../../../docs/transactions.md");
    let blocks: Vec<_> = guide.split("```rust\n").skip(1).collect();
    for block in &blocks {
        for part in block.split_once("```").unwrap().0.split("\n\n") {
            let shown = without_indents(part);
            assert!(example.contains(&shown), "not in the example:\n{shown}");
        }
    }
    assert_eq!(blocks.len(), 2);
    transactions::main().unwrap();
}

fn without_indents(text: &str) -> String {
    text.lines().map(|line| line.trim_start().to_owned() + "\n").collect()
}
