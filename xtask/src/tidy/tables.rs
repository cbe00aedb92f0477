//! What is allowed where: the tables that the rules read.
//!
//! Invariant: every crate of the workspace has its line; a new crate is added here on purpose.

use std::path::Path;

/// One crate and what it may know.
pub struct CrateRules {
    /// Directory under `crates/<tier>/`; the package is `iostrata-<name>`, the binary `iostrata`.
    pub name: &'static str,
    /// Its tier, which is its directory under `crates/`.
    pub tier: Tier,
    /// Touches no clock, no file, no thread.
    pub is_pure: bool,
    /// Crates it may depend on. Tests may use more, never a higher tier.
    pub may_use: &'static [&'static str],
}

/// Data climbs from the first to the last; a crate uses only its own tier and those below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Plain data.
    Base,
    /// What measures.
    Meter,
    /// Storage in virtual time and in our own hands.
    Engine,
    /// Databases, ours and others, and what is run on them.
    Database,
    /// What decides what to measure and what follows.
    Study,
    /// What is seen.
    Show,
    /// Chores, no part of the program.
    Xtask,
}

impl Tier {
    /// The directory under `crates/`.
    pub fn directory(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Meter => "meter",
            Self::Engine => "engine",
            Self::Database => "database",
            Self::Study => "study",
            Self::Show => "show",
            Self::Xtask => "xtask",
        }
    }
}

const BASE: &[&str] = &["stats", "plan", "run"];

/// Every crate.
pub const CRATES: &[CrateRules] = &[
    CrateRules { name: "stats", tier: Tier::Base, is_pure: true, may_use: &[] },
    CrateRules { name: "innodb", tier: Tier::Base, is_pure: true, may_use: &["stats"] },
    CrateRules { name: "plan", tier: Tier::Base, is_pure: true, may_use: &["stats", "innodb"] },
    CrateRules { name: "run", tier: Tier::Base, is_pure: false, may_use: BASE },
    CrateRules { name: "io", tier: Tier::Meter, is_pure: false, may_use: BASE },
    CrateRules {
        name: "load",
        tier: Tier::Meter,
        is_pure: false,
        may_use: &["stats", "plan", "run", "io"],
    },
    CrateRules {
        name: "linux",
        tier: Tier::Meter,
        is_pure: false,
        may_use: &["stats", "plan", "run", "io"],
    },
    CrateRules {
        name: "change",
        tier: Tier::Meter,
        is_pure: false,
        may_use: &["stats", "plan", "run", "io"],
    },
    CrateRules {
        name: "sim",
        tier: Tier::Engine,
        is_pure: true,
        may_use: &["stats", "plan", "run", "change", "innodb"],
    },
    CrateRules { name: "engine", tier: Tier::Engine, is_pure: false, may_use: &["io", "innodb"] },
    CrateRules {
        name: "database",
        tier: Tier::Database,
        is_pure: true,
        may_use: &["stats", "run", "innodb"],
    },
    CrateRules {
        name: "embedded",
        tier: Tier::Database,
        is_pure: false,
        may_use: &["stats", "run", "innodb", "engine", "database"],
    },
    CrateRules {
        name: "server",
        tier: Tier::Database,
        is_pure: false,
        may_use: &["stats", "run", "change", "database"],
    },
    CrateRules {
        name: "workload",
        tier: Tier::Database,
        is_pure: false,
        may_use: &["stats", "plan", "run", "load", "database"],
    },
    CrateRules {
        name: "study",
        tier: Tier::Study,
        is_pure: false,
        may_use: &[
            "stats", "plan", "run", "io", "load", "linux", "change", "sim", "database", "diagnose",
        ],
    },
    CrateRules { name: "diagnose", tier: Tier::Study, is_pure: true, may_use: BASE },
    CrateRules {
        name: "show",
        tier: Tier::Show,
        is_pure: false,
        may_use: &["stats", "plan", "run", "database"],
    },
    CrateRules {
        name: "iostrata",
        tier: Tier::Show,
        is_pure: false,
        may_use: &[
            "stats", "plan", "run", "io", "load", "linux", "change", "sim", "engine", "innodb",
            "database", "embedded", "server", "workload", "study", "diagnose", "show",
        ],
    },
    CrateRules { name: "xtask", tier: Tier::Xtask, is_pure: false, may_use: &["stats"] },
];

/// A part of a crate with borders of its own, and what it may know.
pub struct ModuleRules {
    /// Its directory; a module of one file is that file, without the `.rs`.
    pub dir: &'static str,
    /// Touches no clock, no file, no thread.
    pub is_pure: bool,
    /// Modules next to it, and crates of ours, that it may use. Tests may use more.
    pub may_use: &'static [&'static str],
}

/// Each module uses those of its line and nothing else of its crate: the readers of the machine,
/// the one part of `sim` that is not pure, the base of the embedded engine, the kinds of databases,
/// and the views.
pub const MODULES: &[ModuleRules] = &[
    ModuleRules {
        dir: "crates/meter/linux/src/blocktrace",
        is_pure: false,
        may_use: &["stats", "run"],
    },
    ModuleRules {
        dir: "crates/meter/linux/src/host",
        is_pure: false,
        may_use: &["stats", "run", "io"],
    },
    ModuleRules { dir: "crates/meter/linux/src/profile", is_pure: false, may_use: &["run"] },
    ModuleRules {
        dir: "crates/engine/sim/src/emudisk",
        is_pure: false,
        may_use: &["stats", "plan", "change", "drive", "model"],
    },
    ModuleRules { dir: "crates/engine/engine/src/lock", is_pure: false, may_use: &[] },
    ModuleRules { dir: "crates/engine/engine/src/page", is_pure: true, may_use: &["innodb"] },
    ModuleRules {
        dir: "crates/engine/engine/src/pool",
        is_pure: false,
        may_use: &["io", "innodb", "counts", "error", "page", "sync"],
    },
    ModuleRules {
        dir: "crates/engine/engine/src/redo",
        is_pure: false,
        may_use: &["io", "innodb", "counts", "error", "sync"],
    },
    ModuleRules {
        dir: "crates/engine/engine/src/store",
        is_pure: false,
        may_use: &["io", "innodb", "counts", "error", "page", "sync"],
    },
    ModuleRules { dir: "crates/engine/engine/src/version", is_pure: false, may_use: &["sync"] },
    ModuleRules {
        dir: "crates/database/database/src/target",
        is_pure: true,
        may_use: &["stats", "run"],
    },
    ModuleRules {
        dir: "crates/database/database/src/tune",
        is_pure: true,
        may_use: &["innodb", "run", "target"],
    },
    ModuleRules {
        dir: "crates/database/database/src/watch",
        is_pure: true,
        may_use: &["stats", "run", "target"],
    },
    ModuleRules {
        dir: "crates/show/show/src/metrics",
        is_pure: false,
        may_use: &["run", "database"],
    },
    ModuleRules {
        dir: "crates/show/show/src/report",
        is_pure: false,
        may_use: &["stats", "plan", "run"],
    },
    ModuleRules { dir: "crates/show/show/src/screen", is_pure: false, may_use: &["stats", "run"] },
];

/// The rules of the module that a file belongs to, if it has any.
pub fn module_of(path: &Path) -> Option<&'static ModuleRules> {
    MODULES.iter().find(|rules| path.with_extension("").starts_with(rules.dir))
}

/// Whether a crate has a module that is not pure.
pub fn has_impure_module(rules: &CrateRules) -> bool {
    let src = Path::new("crates").join(rules.tier.directory()).join(rules.name).join("src");
    MODULES.iter().any(|module| !module.is_pure && Path::new(module.dir).starts_with(&src))
}

/// The crate with this name.
pub fn rules_of(name: &str) -> Option<&'static CrateRules> {
    CRATES.iter().find(|rules| rules.name == name)
}

/// Outside crates whose types must not cross a border, and the crates that may use them.
pub const OWNERS: &[(&str, &[&str])] = &[
    ("clap", &["iostrata"]),
    ("clap_complete", &["iostrata"]),
    ("clap_mangen", &["iostrata"]),
    ("indicatif", &["iostrata"]),
    ("signal-hook", &["iostrata"]),
    ("fuser", &["sim"]),
    ("io-uring", &["io"]),
    ("perf-event-open-sys", &["linux"]),
    ("maud", &["show"]),
    ("httparse", &["show"]),
    ("ratatui", &["show"]),
    ("axum", &[]),
    ("tokio", &[]),
    ("mysql", &["server"]),
    ("redb", &[]),
    ("fjall", &[]),
    ("rusqlite", &[]),
];

/// Outside crates that a pure crate has no use for, but in modules that are not pure.
pub const IMPURE: &[&str] = &["libc", "rustix", "io-uring", "signal-hook", "jiff", "tempfile"];

/// Files with `unsafe`, each because safe Rust has no word for what it does.
pub const UNSAFE_FILES: &[&str] = &[
    "crates/engine/engine/src/pool/frames.rs",
    "crates/engine/sim/src/emudisk/priority.rs",
    "crates/meter/change/src/system/block_device.rs",
    "crates/meter/change/src/system/server.rs",
    "crates/meter/io/src/api/libaio.rs",
    "crates/meter/io/src/api/mmap.rs",
    "crates/meter/io/src/api/sync.rs",
    "crates/meter/io/src/api/uring.rs",
    "crates/meter/io/src/buffers.rs",
    "crates/meter/io/src/disk/aligned.rs",
    "crates/meter/io/src/disk/real/batch.rs",
    "crates/meter/io/src/extents.rs",
    "crates/meter/linux/src/host/cpu.rs",
    "crates/meter/linux/src/profile/event.rs",
    "crates/meter/load/src/clock.rs",
    "crates/meter/load/src/region.rs",
    "crates/meter/load/src/usage.rs",
    "crates/meter/load/tests/load/allocation.rs",
];

/// Longest file, in lines.
pub const FILE_LINES_MAX: usize = 800;
/// Longest function, in lines; tests are exempt.
pub const FUNCTION_LINES_MAX: usize = 70;
/// Longest line, in characters.
pub const LINE_CHARS_MAX: usize = 100;

/// Files that may be longer, with the reason.
pub const LONG_FILES: &[(&str, &str)] = &[];

/// Crates that print: the binary, the chores and the comparison with other engines.
pub const PRINTING: &[&str] = &["iostrata", "xtask", "peers"];

/// Files that may end the program: the mains, and the second Ctrl-C.
pub const EXITING: &[&str] = &["main.rs", "crates/show/iostrata/src/signals.rs"];

/// Crates that alter the system: the only ones that may write what `/sys` and `/proc` show. A
/// benchmark halves the limit of a group that `change` made for it, and removes.
pub const ALTERING: &[&str] = &["change", "xtask"];

/// Crates that only look: they open nothing for writing outside their tests.
pub const READ_ONLY: &[&str] = &["linux"];
