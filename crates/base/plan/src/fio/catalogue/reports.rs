//! Options of reports and logs.

use super::entry::{FioOption, changes, warned};

const ALWAYS: &str = "it is always measured and reported";

pub(super) const ENTRIES: &[FioOption] = &[
    changes("group_reporting", "1;numjobs=2", "clones and jobs of a group are reported as one")
        .bare(),
    changes("percentile_list", "50:99.99", "percentiles in fio's forms of the output"),
    changes("write_bw_log", "p", "log of bandwidth, PREFIX_bw.N.log"),
    changes("write_iops_log", "p", "log of requests per second, PREFIX_iops.N.log"),
    changes("write_lat_log", "p", "logs of latencies, PREFIX_lat.N.log, _slat and _clat"),
    changes("log_avg_msec", "500;write_bw_log=p", "width of a line in logs; 100 ms if not given"),
    changes("per_job_logs", "0;write_bw_log=p", "logs without the number of the job"),
    warned("write_hist_log", "p", "histograms are kept in the run directory"),
    warned("log_hist_msec", "500", "histograms are kept in the run directory").but(&["0"]),
    warned("log_hist_coarseness", "1", "histograms are kept in the run directory").but(&["0"]),
    warned("log_max_value", "1", "logs hold averages; see the percentiles").but(&["0"]),
    warned("log_window_value", "both", "logs hold averages; see the percentiles").but(&["avg"]),
    warned("log_issue_time", "1", "a line is an average").but(&["0"]),
    changes("log_offset", "1;write_bw_log=p", "a column in logs; 0, since a line is an average"),
    changes("log_prio", "1;write_bw_log=p", "the priority in logs as `0x0000`"),
    changes("log_unix_epoch", "1;write_bw_log=p", "lines of logs count from 1970"),
    warned("log_entries", "9", "room for logs is made as needed"),
    warned("log_compression", "64k", "logs are written plain"),
    warned("log_compression_cpus", "0", "logs are written plain"),
    warned("log_store_compressed", "1", "logs are written plain").but(&["0"]),
    warned("log_alternate_epoch", "1", "logs count from the start of the job").but(&["0"]),
    warned("log_alternate_epoch_clock_id", "1", "logs count from the start of the job").but(&["0"]),
    warned("bwavgtime", "100", "the series has its own width; see log_avg_msec"),
    warned("iopsavgtime", "100", "the series has its own width; see log_avg_msec"),
    warned("stats", "0", ALWAYS).but(&["1"]),
    warned("disk_util", "0", "the device is always observed").but(&["1"]),
    changes("clat_percentiles", "0", "percentiles of clat in fio's forms of the output"),
    changes("lat_percentiles", "1", "percentiles of lat in fio's forms of the output"),
    changes("slat_percentiles", "1", "percentiles of slat in fio's forms of the output"),
    warned("significant_figures", "5", "figures are printed with three digits"),
    warned("disable_lat", "1", ALWAYS).but(&["0"]),
    warned("disable_clat", "1", ALWAYS).but(&["0"]),
    warned("disable_slat", "1", ALWAYS).but(&["0"]),
    warned("disable_bw_measurement", "1", ALWAYS).or(&["disable_bw"]).but(&["0"]),
    changes("unified_rw_reporting", "mixed", "directions are reported as one, or both ways")
        .but(&["none", "0"]),
    warned("block_error_percentiles", "1", "the first failed request ends the run").but(&["0"]),
    warned("unit_base", "1", "bytes are printed").but(&["0", "8"]),
];
