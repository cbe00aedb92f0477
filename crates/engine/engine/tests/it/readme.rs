//! The program that README.md shows is the one that is compiled here, and it runs again.

#[allow(dead_code)] // its `main`
#[path = "../../examples/hello.rs"]
mod hello;

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
