//! Sound storage: nothing is lost and nothing is advised beyond sizes.

use serde_json::Value;

use super::ground::Ground;
use super::{probe, runs};

/// Losses and advice that repairs something; sizes that fit the storage are no repair.
fn assert_clean(document: &Value) {
    let all = |name: &str| document[name].as_array().unwrap().iter();
    assert_eq!(all("losses").count(), 0, "{:#}", document["losses"]);
    let lost: Vec<&Value> = all("findings").filter(|one| one["kind"] == "loss").collect();
    assert!(lost.is_empty(), "{lost:#?}");
    let cautions: Vec<&Value> = all("findings").filter(|one| one["kind"] == "caution").collect();
    assert!(cautions.len() <= 2, "{cautions:#?}");
    let repairs = all("advice").filter(|one| {
        !one["setting"].as_str().unwrap().starts_with("innodb_io_capacity")
            && one["setting"] != "innodb_flush_neighbors"
    });
    assert_eq!(repairs.count(), 0, "{:#}", document["advice"]);
}

#[test]
fn ext4_on_the_disk_is_sound() {
    if runs("ext4_on_the_disk_is_sound") {
        assert_clean(&probe(&Ground::on_disk(), "--size 512M"));
    }
}

#[test]
fn xfs_on_a_loop_device_is_sound() {
    if runs("xfs_on_a_loop_device_is_sound") {
        let ground = Ground::on_loop(8 << 30, "mkfs.xfs -q", &[]);
        assert_clean(&probe(&ground, "--size 512M"));
    }
}

#[test]
fn an_emulated_flash_drive_is_sound() {
    if runs("an_emulated_flash_drive_is_sound") {
        assert_clean(&probe(&Ground::emulated("nvme", "16G"), "--size 512M"));
    }
}
