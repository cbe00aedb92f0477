//! Options of time, rates and the order of jobs.

use super::entry::{FioOption, changes, refused, warned};

pub(super) const ENTRIES: &[FioOption] = &[
    changes("runtime", "5", "longest time of each job").or(&["timeout"]),
    changes("time_based", "1;runtime=5", "jobs go on until the runtime is over").bare(),
    changes("ramp_time", "2", "time before anything is counted"),
    changes("startdelay", "2", "time before a job begins; of a range each clone draws its own"),
    changes("loops", "2", "how often the bytes of a job are moved"),
    changes("numjobs", "2", "clones of a job"),
    changes("thread", "1", "clones are threads, not processes").or(&["threads"]).bare(),
    changes("stonewall", "1", "jobs before it end first").or(&["wait_for_previous"]).bare(),
    changes("new_group", "1", "begins another group of reports").bare(),
    changes("exitall", "1", "the wave ends when the first of its jobs ends").bare(),
    warned("exit_what", "all", "exitall ends the other running jobs").but(&["group"]),
    changes(
        "exitall_on_error",
        "1;rate_min=1k",
        "the wave ends with a job that misses its least rate; with a failed request it always does",
    )
    .but(&["0"])
    .bare(),
    changes("rate", "1m", "bytes per second of a clone, by direction"),
    changes("rate_iops", "100", "requests per second of a clone, by direction"),
    changes("rate_process", "poisson;rate_iops=100", "linear or poisson"),
    changes(
        "rate_min",
        "1k",
        "bytes per second below which a clone ends with error 5, by direction",
    )
    .or(&["ratemin"]),
    changes(
        "rate_iops_min",
        "1",
        "requests per second below which a clone ends with error 5, by direction",
    ),
    changes(
        "rate_cycle",
        "100;rate_min=1k",
        "milliseconds over which these rates are averaged, from two seconds on",
    )
    .or(&["ratecycle"]),
    warned("rate_ignore_thinktime", "1", "a schedule never waits for pauses"),
    changes("thinktime", "1000", "pause between requests, in microseconds"),
    changes("thinktime_blocks", "4;thinktime=1000", "requests between pauses"),
    warned("thinktime_spin", "10", "a pause leaves the processor alone").but(&["0"]),
    warned("thinktime_blocks_type", "issue", "requests count when they start").but(&["complete"]),
    refused(
        "thinktime_iotime",
        "1",
        "pauses come after requests, not after time; use thinktime_blocks",
    )
    .but(&["0"]),
    warned("max_latency", "1s", "slow requests are measured and the run goes on").but(&["0"]),
    changes("latency_target", "1ms", "the largest depth up to iodepth that keeps it is measured")
        .but(&["0"]),
    changes("latency_window", "2s;latency_target=1ms", "how long each depth is tried, in us"),
    changes("latency_percentile", "99;latency_target=1ms", "requests in a hundred that keep it"),
    changes("latency_run", "1;latency_target=1ms", "the depth found is measured for the runtime")
        .but(&["0"]),
    changes(
        "steadystate",
        "iops:1%;ss_dur=9s",
        "the wave ends when the rate of this job is steady",
    )
    .or(&["ss"]),
    changes("steadystate_duration", "9s;ss=iops:1%", "how long the rate must be steady")
        .or(&["ss_dur"]),
    changes("steadystate_ramp_time", "1s;ss=iops:1%;ss_dur=9s", "time before its rate is checked")
        .or(&["ss_ramp"])
        .but(&["0"]),
    changes("flow", "2", "the job's weight: requests of a flow's jobs are as their weights")
        .but(&["0"]),
    changes("flow_id", "1;flow=2", "the flow that a job belongs to, of those that run together")
        .but(&["0"]),
    changes("flow_sleep", "9;flow=2", "wait of a job that is ahead, in microseconds").but(&["0"]),
    warned("flow_watermark", "9", "a job waits as soon as it is ahead"),
    warned("thinkcycles", "9", "a pause leaves the processor alone").but(&["0"]),
    warned("steadystate_check_interval", "2", "the rate is checked once a second")
        .or(&["ss_interval"])
        .but(&["1"]),
    warned("job_start_clock_id", "1", "times are those of CLOCK_REALTIME").but(&["0"]),
    warned("rwmixcycle", "500", "the mix is drawn request by request"),
    warned("clocksource", "clock_gettime", "the clock is chosen by what can be trusted"),
    warned("gtod_reduce", "1", "the clock is read twice per request at most, and all is measured")
        .but(&["0"]),
    warned("gtod_cpu", "1", "every worker reads its own clock"),
];
