//! Causes that show as patterns over time or over rate.

use super::ground::Ground;
use super::{Planted, check, probe_in, runs};

#[test]
fn a_control_group_that_holds_requests_back() {
    const TEST: &str = "a_control_group_that_holds_requests_back";
    if !runs(TEST) {
        return;
    }
    let mut ground = Ground::on_disk();
    let Some(group) = ground.group("blkio", TEST) else { return };
    let limit = |iops: &str| {
        for what in ["read", "write"] {
            let file = group.join(format!("blkio.throttle.{what}_iops_device"));
            std::fs::write(file, format!("{} {iops}", ground.device_number())).unwrap();
        }
    };
    limit("2000");
    let planted = Planted {
        found: &[("limit_above_device", "limit")],
        words: &["blkio.throttle", "2 K reads/s"],
        absent: &["Nothing needs to change"],
    };
    check(&probe_in(&ground, "--size 256M", Some(&group)), &planted);
    limit("0");
    let cured = Planted { absent: &["limit_above_device"], ..Planted::default() };
    check(&probe_in(&ground, "--size 256M", Some(&group)), &cured);
}
