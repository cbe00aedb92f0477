//! The studies that come with the program.

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../studies/", $name, ".toml"))
    };
}

/// Each with its name and text, in the order in which they are listed.
const SHIPPED: &[(&str, &str)] = &[
    ("fusion-io", text!("fusion-io")),
    ("ext4-vs-xfs", text!("ext4-vs-xfs")),
    ("limits", text!("limits")),
    ("queue-size", text!("queue-size")),
    ("flushing", text!("flushing")),
    ("purge", text!("purge")),
    ("single-user", text!("single-user")),
    ("two-on-one-disk", text!("two-on-one-disk")),
    ("stress-redo", text!("stress-redo")),
    ("io-capacity", text!("io-capacity")),
    ("all-o-direct", text!("all-o-direct")),
    ("insert-queue", text!("insert-queue")),
    ("page-size", text!("page-size")),
    ("server-vs-engine", text!("server-vs-engine")),
    ("smoke", text!("smoke")),
];

/// The shipped studies: name and text.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

/// The text of a shipped study.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}
