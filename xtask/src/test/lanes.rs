//! Which tests may run at the same time as which, and which changes concern them.
//!
//! Purpose: the one table of how integration tests are run and, for `--changed`, of which tests of
//! the program a crate concerns, and which tests of another package do not use one of its
//! dependencies.
//! Invariant: every module of a binary in the table has a row, which tidy checks. A binary without
//! rows runs whole, in parallel with anything.

use Lane::{Alone, Free, Load, Machine};

/// What may run at the same time as a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Anything.
    Free,
    /// Anything that changes no loop device, mount, control group, sysctl or trace of the machine.
    Machine,
    /// At most one other load, a server, an engine or a device at full speed; two once no free test
    /// is left.
    Load,
    /// Nothing: it measures a quiet machine, or moments of real time.
    Alone,
}

/// Whether tests share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Each test has one of its own.
    Each,
    /// The tests of the row are shared out to a few, each with so many threads: what the tests of
    /// a process share is dear. It is there as long as a test uses it, so those that take turns
    /// have a second thread that waits.
    Shared {
        /// How many processes.
        processes: usize,
        /// Threads of each.
        threads: usize,
    },
}

/// Tests of an integration binary.
#[derive(PartialEq, Eq)]
pub struct LaneRow {
    /// The package without `iostrata-`; `cli` is the binary of the program.
    pub binary: &'static str,
    /// What the names of the tests begin with; the longest beginning decides.
    pub tests: &'static str,
    /// What may run at the same time.
    pub lane: Lane,
    /// Whether they share a process.
    pub process: Process,
    /// The crates whose change concerns them; of `cli` only.
    pub about: &'static [&'static str],
    /// Dependencies of the package, and parts of crates (`database/tune`), that these tests do
    /// without: a change that reaches them by nothing else does not concern them.
    pub without: &'static [&'static str],
}

impl LaneRow {
    const fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }
}

const fn row(binary: &'static str, tests: &'static str, lane: Lane) -> LaneRow {
    LaneRow { binary, tests, lane, process: Process::Each, about: &[], without: &[] }
}

const fn cli(tests: &'static str, lane: Lane, about: &'static [&'static str]) -> LaneRow {
    LaneRow { about, ..row("cli", tests, lane) }
}

/// What is not about tuning.
const TUNE: &[&str] = &["database/tune"];

/// The table. Four servers and a cluster of three may run at once, with pools of up to 512 MB:
/// 4 GB of memory at most.
#[rustfmt::skip]
pub const ROWS: &[LaneRow] = &[
    cli("bad_input::", Machine, &["plan", "stats", "change"]),
    cli("database::", Load, &["workload", "load", "embedded", "engine", "database"]).without(TUNE),
    cli("disk::", Machine, &["sim", "change"]),
    cli("disk_kill::", Machine, &["sim", "change"]),
    cli("engine::", Load, &["engine"]),
    cli("exact_calls::", Load, &["run", "plan"]),
    cli("files_kill::", Free, &["io", "change"]),
    cli("fio::", Free, &["plan", "load", "io"]),
    cli("fio_beside::", Free, &["plan", "load", "io"]),
    cli("fio_line::", Free, &["plan", "load", "io"]),
    cli("fio_output::", Free, &["load", "io", "stats"]),
    cli("full_disk::", Machine, &["server", "workload"]),
    cli("help_files::", Free, &["plan", "innodb"]),
    cli("loads::", Load, &["workload", "database", "embedded", "server", "stats"]).without(TUNE),
    cli("options::", Free, &["plan", "innodb"]),
    cli("planted::", Alone, &["diagnose", "study", "sim"]),
    cli("private_server::", Machine, &["change", "server"]),
    cli("probe_target::", Load, &["study", "server", "embedded", "workload", "diagnose"]),
    cli("replication::", Load, &["database", "server", "change"]),
    cli("restore::", Free, &["change", "io"]),
    cli("restore_server::", Free, &["change", "server"]),
    cli("server::", Load, &["server", "workload", "load", "database"]).without(TUNE),
    cli("server::a_load_that_is_held_up_by_a_lock", Alone, &["server", "workload", "database"]).without(TUNE),
    cli("server::a_run_whose_server_stays_away", Free, &["server", "workload", "load", "database"]).without(TUNE),
    cli("signals::", Free, &["io", "load"]),
    cli("simulate::", Free, &["sim", "show", "stats"]),
    cli("simulate_flush::", Free, &["sim", "innodb", "show"]),
    cli("simulate_flush::a_recorded_run", Load, &["sim", "innodb", "show"]),
    cli("stalls::", Machine, &["database", "linux", "sim"]).without(TUNE),
    cli("study::", Machine, &["study", "diagnose", "show", "plan", "change"]),
    cli("study_kill::", Machine, &["study", "change"]),
    cli("study_servers::", Load, &["study", "server"]),
    // What a study makes of engines, not what these do.
    cli("study_transactions::", Load, &["study", "embedded", "workload"]),
    cli("study_transactions::policies_are_compared", Load, &["study", "embedded", "engine"]),
    cli("study_servers::a_server_that_the_kernel_kills", Machine, &["study", "server"]),
    cli("study_transactions::a_point_without_room", Machine, &["study", "embedded"]),
    cli("sysbench_words::", Load, &["workload", "server", "load", "embedded"]),
    cli("tune::", Load, &["database", "server", "change"]),
    cli("tune_elsewhere::", Load, &["database", "server", "change"]),
    cli("tune_journal::", Machine, &["database", "server", "change"]),
    cli("tune_kill::", Load, &["database", "server", "change"]),
    cli("tune_lease::", Load, &["database", "server", "change"]),
    cli("tune_levers::", Load, &["database", "server", "change"]),
    cli("tune_refused::", Free, &["database", "server", "change"]),
    LaneRow {
        process: Process::Shared { processes: 2, threads: 2 },
        ..cli("tune_shared::", Load, &["database", "server", "change"])
    },
    cli("tune_tls::", Load, &["database", "server", "change"]),
    cli("tune_words::", Load, &["database", "server", "change"]),
    cli("views::", Machine, &["show", "linux"]),
    cli("watch::", Free, &["database", "server", "show"]),
    cli("watch_advice::", Load, &["database", "server", "diagnose"]).without(TUNE),

    row("change", "database::", Machine),
    row("change", "kill::", Machine),
    row("change", "kinds::", Machine),
    row("change", "refusals::", Machine),
    row("database", "", Load).without(&["sim", "database/tune"]),
    row("database", "closed_loop::", Free).without(&["change", "embedded", "linux", "server"]),
    row("database", "beside::", Alone).without(&["embedded", "sim", "database/tune"]),
    row("database", "causes::", Load).without(&["embedded", "sim", "database/tune"]),
    row("database", "log_buffer::", Machine).without(&["embedded", "sim", "database/tune"]),
    row("database", "stalls::", Machine).without(&["embedded", "sim", "database/tune"]),
    row("database", "shortage::", Machine).without(&["embedded", "sim", "database/tune"]),
    row("database", "quiet::", Alone).without(&["embedded", "sim", "database/tune"]),
    row("engine", "", Free).without(&["sim"]),
    row("engine", "agreement::", Alone),
    row("io", "", Free),
    row("io", "devices::", Machine),
    row("io", "sets::", Machine),
    row("linux", "blocktrace::", Machine),
    row("linux", "host::", Machine),
    row("linux", "host::watching::evidence_of_a_clean_window", Alone),
    row("linux", "profile::", Alone),
    row("load", "", Load),
    row("load", "real::start_lateness", Alone),
    row("load", "transactions::a_warm_up_that_is_found", Alone),
    row("server", "", Free),
    row("server", "cluster::", Load),
    row("server", "settings::a_server_that_was_restarted", Load),
    row("server", "transactions::", Load),
    row("show", "", Free),
    LaneRow {
        process: Process::Shared { processes: 1, threads: 2 },
        ..row("show", "report::study", Free)
    },
    row("sim", "", Machine),
    row("study", "", Machine),
    row("workload", "", Free),
    row("workload", "cluster::", Load).without(&["embedded"]),
    row("workload", "kills::", Load).without(&["embedded"]),
    row("workload", "servers::", Load).without(&["embedded"]),
];

/// Unit tests that run in a process of their own, by the crate and what their names begin with: in
/// one with the others of their crate they would be among the longest jobs.
pub const UNITS: &[(&str, &str)] =
    &[("sim", "flush::"), ("sim", "insert::"), ("stats", "coverage::")];

/// The processes of a crate's unit tests, by what the names of their tests begin with; empty where
/// there is one.
pub fn unit_processes(binary: &str) -> impl Iterator<Item = &'static str> {
    UNITS.iter().filter(move |(name, _)| *name == binary).map(|(_, tests)| *tests)
}

/// The row of a test; `None` where the binary has none.
pub fn row_of(binary: &str, test: &str) -> Option<&'static LaneRow> {
    let rows = ROWS.iter().filter(|row| row.binary == binary && test.starts_with(row.tests));
    rows.max_by_key(|row| row.tests.len())
}

/// Whether the table has rows of this binary.
pub fn is_listed(binary: &str) -> bool {
    ROWS.iter().any(|row| row.binary == binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_decides() {
        assert_eq!(row_of("engine", "agreement::a").map(|row| row.lane), Some(Alone));
        assert_eq!(row_of("engine", "crash::a").map(|row| row.lane), Some(Free));
        assert!(row_of("cli", "no_such_module::a").is_none());
        assert!(!is_listed("stats"));
    }

    #[test]
    fn no_row_is_there_twice() {
        for (at, row) in ROWS.iter().enumerate() {
            let same = |other: &&LaneRow| other.binary == row.binary && other.tests == row.tests;
            assert!(!ROWS[..at].iter().any(|other| same(&other)), "{} {}", row.binary, row.tests);
        }
    }
}
