//! Forms that people write and fio takes: each in a job of a few lines.

use super::plan;
use crate::fio::FioPlan;

fn job(lines: &str) -> FioPlan {
    plan(&format!("[a]\n{lines}\n")).unwrap_or_else(|error| panic!("{lines}: {error}"))
}

#[test]
fn a_log_without_a_name_has_that_of_the_job() {
    let logs = |lines: &str| job(lines).waves[0].jobs[0].logs.clone();
    let found = logs("size=1m\nwrite_bw_log\nwrite_iops_log=x\nwrite_lat_log=");
    assert_eq!(found.bandwidth.as_deref(), Some("a"));
    assert_eq!((found.iops.as_deref(), found.latency.as_deref()), (Some("x"), Some("a")));
    let found = logs("size=1m\nnumjobs=2\nname=b\nwrite_bw_log");
    assert_eq!(found.bandwidth.as_deref(), Some("b"));
}
