//! Options of fio's command line that belong to no job.

use super::entry::{FioOption, changes, refused, warned};

const NO_SERVER: &str = "jobs run on this machine only; start iostrata on each host";
const NO_TRIGGER: &str = "job files run no programs; run it beside iostrata";

pub(super) const ENTRIES: &[FioOption] = &[
    changes("readonly", "", "a job that writes is refused").bare(),
    refused("client", "h", NO_SERVER),
    refused("server", "", NO_SERVER).bare(),
    refused("daemonize", "f", NO_SERVER),
    refused("remote_config", "f", NO_SERVER),
    refused("trigger_file", "f", NO_TRIGGER),
    refused("trigger_timeout", "1", NO_TRIGGER),
    refused("trigger", "true", NO_TRIGGER),
    refused("trigger_remote", "true", NO_TRIGGER),
    refused("merge_blktrace_only", "", "traces are not merged; use fio for that").bare(),
    refused("inflate_log", "f", "logs are written plain; use fio for its own").bare(),
    refused("crctest", "", "checksums are not timed; use fio for that").bare(),
    refused("cpuclock_test", "", "the clock is checked at each start; leave it out").bare(),
    refused("cmdhelp", "", "iostrata fio --help lists every option").bare(),
    refused("enghelp", "", "docs/fio.md lists engines and options").bare(),
    refused("append_terse", "", "reports have one form each; use several of --output-format")
        .bare(),
    warned("terse_version", "4", "terse output has version 3").but(&["3"]),
    warned("eta_newline", "1", "progress stays in one line"),
    warned("debug", "io", "there are no lines for debuggers"),
    warned("idle_prof", "percpu", "processor time of the workers is always reported"),
    warned("bandwidth_log", "", "logs are those of the jobs; see write_bw_log").bare(),
    warned("alloc_size", "64", "room is made as needed"),
    warned("max_jobs", "8", "room is made as needed"),
    warned("warnings_fatal", "", "warnings end nothing").bare(),
    warned("aux_path", "d", "state is kept in the run directory; see --out"),
];
