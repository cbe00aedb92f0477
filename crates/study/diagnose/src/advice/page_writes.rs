//! Whether pages that lie together are worth writing together.

use iostrata_run::Advice;
use iostrata_units::microseconds;

use super::{Found, SettingPlace, line};
use crate::finding::FindingId;

const SETTING: &str = "innodb_flush_neighbors";

pub(super) fn flush_neighbors(found: &Found<'_>) -> Option<Advice> {
    let us = |id| found.number(id, "random_read_us");
    if let Some(seek_us) = us(FindingId::SeekCost) {
        let text = format!(
            "A random access costs {}: writing the dirty neighbours of a page along with it saves \
             seeks.",
            microseconds(seek_us)
        );
        return Some(neighbors("1", FindingId::SeekCost, text));
    }
    let read_us = us(FindingId::RotationalFlagWrong)?;
    let text = format!(
        "A random read takes {}: there are no seeks to save, only writes to be wasted. MariaDB and \
         MySQL before 8.0 write neighbours here because the kernel calls the device rotational; \
         MySQL 8.0 and later already have 0.",
        microseconds(read_us)
    );
    Some(neighbors("0", FindingId::RotationalFlagWrong, text))
}

fn neighbors(value: &str, why: FindingId, text: String) -> Advice {
    let default = Some("0 in MySQL 8.0 and later, 1 in MariaDB".to_owned());
    Advice { default, ..line(SETTING, value, SettingPlace::MyCnf, &[why], text, UNDO) }
}

const UNDO: &str = "SET GLOBAL innodb_flush_neighbors to the value before";
