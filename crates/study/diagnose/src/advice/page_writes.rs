//! Whether pages that lie together are worth writing together.

use iostrata_run::Advice;
use iostrata_stats::units::microseconds;

use super::{Found, SettingPlace, line};
use crate::finding::capped::VOLUME_CAP;
use crate::finding::seek::{ROTATIONAL_FLAG_WRONG, SEEK_COST};

const SETTING: &str = "innodb_flush_neighbors";

pub(super) fn flush_neighbors(found: &Found<'_>) -> Option<Advice> {
    let us = |id| found.number(id, "random_read_us");
    // On a capped volume a neighbour costs a request of the cap, whatever a seek takes.
    let is_capped = found.get(VOLUME_CAP).is_some();
    if let Some(seek_us) = us(SEEK_COST).filter(|_| !is_capped) {
        let text = format!(
            "A random access costs {}: writing the dirty neighbours of a page along with it saves \
             seeks.",
            microseconds(seek_us)
        );
        return Some(neighbors("1", SEEK_COST, text));
    }
    let read_us = us(ROTATIONAL_FLAG_WRONG)?;
    let text = format!(
        "A random read takes {}: there are no seeks to save, so writing neighbours only adds \
         writes. MariaDB writes them here because the kernel calls the device rotational; MySQL \
         before 8.0 does on any device; MySQL 8.0 and later has 0.",
        microseconds(read_us)
    );
    Some(neighbors("0", ROTATIONAL_FLAG_WRONG, text))
}

fn neighbors(value: &str, why: &str, text: String) -> Advice {
    line(SETTING, value, SettingPlace::MyCnf, &[why], text, UNDO)
}

const UNDO: &str = "SET GLOBAL innodb_flush_neighbors to the value before";
