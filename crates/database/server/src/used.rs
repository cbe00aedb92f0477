//! What a server has used, from its status; and the processor time of its process, where that runs
//! on this machine.
//!
//! Invariant: what a flavour does not count is unknown. A process is taken for the server only when
//! it works in the server's data directory.

use std::fs;
use std::path::Path;

use iostrata_run::ResourceUse;

use crate::facts::Variables;

const PAGE_BYTES: f64 = 16_384.0;

/// From `SHOW GLOBAL STATUS` and `SHOW GLOBAL VARIABLES`.
pub(crate) fn used(status: &Variables, variables: &Variables) -> ResourceUse {
    let count = |name: &str| status.get(name)?.parse::<f64>().ok();
    let page_bytes = count("Innodb_page_size").unwrap_or(PAGE_BYTES);
    let pages = |name: &str| count(name).map(|pages| pages * page_bytes / PAGE_BYTES);
    let redo_syncs = count("Innodb_os_log_fsyncs");
    ResourceUse {
        redo_bytes: count("Innodb_os_log_written"),
        redo_syncs,
        // MariaDB counts those of the redo among all.
        redo_and_data_syncs: match redo_syncs {
            Some(_) => None,
            None => count("Innodb_data_fsyncs"),
        },
        binlog_syncs: binlog_syncs(count("Binlog_group_commits"), variables),
        page_writes: pages("Innodb_pages_written"),
        doublewrite_pages: pages("Innodb_dblwr_pages_written"),
        page_reads: pages("Innodb_pages_read"),
        cpu_us: server_cpu_us(variables).zip(cpu_us("self")).map(|(server, own)| server + own),
    }
}

/// Syncs of the binary log. MySQL does not count its groups.
fn binlog_syncs(groups: Option<f64>, variables: &Variables) -> Option<f64> {
    let value = |name: &str| variables.get(name).map(|value| value.to_ascii_uppercase());
    if matches!(value("log_bin")?.as_str(), "OFF" | "0") {
        return Some(0.0);
    }
    match value("sync_binlog")?.parse::<f64>().ok()? {
        0.0 => Some(0.0),
        every => Some(groups? / every),
    }
}

/// Processor time of the server's process.
fn server_cpu_us(variables: &Variables) -> Option<f64> {
    let data_dir = fs::canonicalize(variables.get("datadir")?).ok()?;
    let pid_file = data_dir.join(variables.get("pid_file")?);
    let pid = fs::read_to_string(pid_file).ok()?;
    let pid = pid.trim().parse::<u32>().ok()?.to_string();
    let works_in = fs::read_link(Path::new("/proc").join(&pid).join("cwd")).ok()?;
    (works_in == data_dir).then(|| cpu_us(&pid)).flatten()
}

/// Processor time of a process, from its line in /proc: user and system time, in ticks.
fn cpu_us(pid: &str) -> Option<f64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
    ticks(&stat).map(|ticks| ticks * 1e6 / rustix::param::clock_ticks_per_second() as f64)
}

fn ticks(stat: &str) -> Option<f64> {
    // The name in brackets may hold blanks and brackets.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn what_a_flavour_does_not_count_is_unknown() {
        let mysql = used(
            &pairs(&[("Innodb_os_log_fsyncs", "7"), ("Innodb_data_fsyncs", "9")]),
            &pairs(&[("log_bin", "ON"), ("sync_binlog", "1")]),
        );
        assert_eq!((mysql.redo_syncs, mysql.binlog_syncs, mysql.cpu_us), (Some(7.0), None, None));
        let maria = [("Innodb_data_fsyncs", "9"), ("Binlog_group_commits", "6")];
        let sync_binlog = |every| pairs(&[("log_bin", "ON"), ("sync_binlog", every)]);
        let syncs = |every| used(&pairs(&maria), &sync_binlog(every)).binlog_syncs;
        assert_eq!((syncs("1"), syncs("2"), syncs("0")), (Some(6.0), Some(3.0), Some(0.0)));
        let of_maria = used(&pairs(&maria), &pairs(&[]));
        let syncs = (of_maria.redo_syncs, of_maria.redo_and_data_syncs);
        assert_eq!(syncs, (None, Some(9.0)), "9 are of all files");
        assert_eq!(used(&pairs(&[]), &pairs(&[("log_bin", "OFF")])).binlog_syncs, Some(0.0));
        let large = pairs(&[("Innodb_page_size", "65536"), ("Innodb_pages_read", "2")]);
        assert_eq!(used(&large, &pairs(&[])).page_reads, Some(8.0));
    }

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(ticks(stat), Some(42.0));
        assert_eq!(ticks("12 (a"), None);
        assert!(cpu_us("self").is_some());
    }
}
