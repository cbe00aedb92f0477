//! Facts of the host, with what was measured on it.

use iostrata_run::FindingKind;
use iostrata_run::host::{DirectIoBehaviour, PathKind};

use crate::support::{Disk, document, found, host, loss_ids};

#[test]
fn a_wrong_rotational_flag_is_a_fact_with_one_line_of_advice() {
    let mut flagged = host();
    flagged.path.devices[0].rotational_flag = Some(true);
    let document = document(&Disk::default(), &flagged, 1);
    let finding = found(&document, "rotational_flag_wrong").unwrap();
    // The figures are as certain as ever: a setting has to match.
    assert_eq!(finding.kind, FindingKind::Sizing);
    assert!(loss_ids(&document).is_empty());
    let line = document.advice.iter().find(|one| one.setting == "innodb_flush_neighbors").unwrap();
    assert_eq!(line.value, "0");
    let disk = Disk { read_us: 8_000.0, write_us: 100.0, channels: 1.5, ..Disk::default() };
    let turning = crate::support::document(&disk, &flagged, 2);
    assert!(found(&turning, "rotational_flag_wrong").is_none(), "it does turn");
}

#[test]
fn a_flush_that_is_too_cheap_is_a_caution_and_no_loss() {
    let mut cached = host();
    cached.path.devices[0].write_cache = Some("write back".to_owned());
    let document = document(&Disk::default(), &cached, 3);
    assert!(found(&document, "flush_suspiciously_cheap").is_some());
    assert!(loss_ids(&document).is_empty());
    let through = crate::support::document(&Disk::default(), &host(), 3);
    assert!(found(&through, "flush_suspiciously_cheap").is_none());
}

#[test]
fn missing_barriers_are_put_back() {
    let mut bare = host();
    bare.path.mount_options.push("nobarrier".to_owned());
    let document = document(&Disk::default(), &bare, 4);
    assert!(found(&document, "barriers_off").is_some());
    let commits = &found(&document, "commit_rate").unwrap().text;
    for said in [&document.headline[0], commits] {
        assert!(said.contains(" commits/s") && !said.contains("durable"), "{said}");
    }
    assert!(document.advice.iter().any(|one| one.setting == "barrier" && one.value == "1"));
}

#[test]
fn memory_is_no_disk() {
    let mut memory = host();
    memory.path.kind = PathKind::Tmpfs;
    memory.path.direct_io.behaviour = DirectIoBehaviour::Refused;
    let document = document(&Disk::default(), &memory, 5);
    assert!(found(&document, "not_a_local_disk").is_some());
    assert!(found(&document, "direct_io_ignored").is_some());
}

#[test]
fn promised_atomic_writes_never_turn_the_doublewrite_off() {
    let mut atomic = host();
    atomic.path.devices[0].atomic_write_bytes_max = Some(65_536);
    let document = document(&Disk::default(), &atomic, 6);
    assert!(found(&document, "atomic_writes_promised").is_some());
    assert!(document.advice.iter().all(|one| one.setting != "innodb_doublewrite"));
}

#[test]
fn a_slow_scheduler_on_a_fast_device_is_only_a_hint() {
    let mut scheduled = host();
    scheduled.path.devices[0].scheduler = Some("bfq".to_owned());
    let document = document(&Disk::default(), &scheduled, 7);
    let hint = found(&document, "scheduler_cost").unwrap();
    assert!(hint.text.contains("not compared"));
    assert!(document.advice.iter().all(|one| !one.setting.contains("scheduler")));
}
