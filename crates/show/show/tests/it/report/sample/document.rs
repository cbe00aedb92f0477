//! The sample's document: a SATA disk behind ext4 with the defaults of a fresh server.

use std::collections::BTreeMap;

use iostrata_plan::{Better, Layer};
use iostrata_run::{
    Advice, Curve, CurvePoint, Finding, FindingKind, Loss, ProbeDocument, RedoRow, Risk, Rung,
    Unavailable, Verification,
};
use iostrata_stats::Verdicts;
use serde_json::{Value, json};

use super::rungs::{RUNGS, Row};
use Layer::{FileApi, Filesystem, Host};

fn spread(row: &Row) -> f64 {
    0.004 + (row.name.len() % 5) as f64 * 0.004
}

fn rungs() -> Vec<Rung> {
    let latency = |row: &Row| (row.unit != "ns").then(|| 1e6 * row.depth / row.value.max(1.0));
    RUNGS
        .iter()
        .map(|row| Rung {
            name: row.name.into(),
            title: row.title.into(),
            layer: row.layer,
            value: row.value,
            value_ci95: Some([row.value * (1.0 - spread(row)), row.value * (1.0 + spread(row))]),
            value_n: 102,
            value_range: None,
            unit: row.unit.into(),
            better: if row.unit.ends_with("/s") { Better::Higher } else { Better::Lower },
            latency_us: latency(row),
            device_latency_us: latency(row)
                .filter(|_| row.layer != Layer::FileApi)
                .map(|us| us * 0.94),
            bound: None,
            verdicts: row.verdicts.iter().copied().collect(),
        })
        .collect()
}

fn curve(name: &str, title: &str, text: &str, knee_x: Option<f64>) -> Curve {
    let rows: Vec<&Row> =
        RUNGS.iter().filter(|row| row.curve.is_some_and(|(curve, ..)| curve == name)).collect();
    let points = rows.iter().map(|row| {
        let mean = 1e6 * row.depth / row.value;
        CurvePoint {
            rung: row.name.into(),
            x: row.curve.unwrap().2,
            value: row.value,
            value_ci95: Some([row.value * (1.0 - spread(row)), row.value * (1.0 + spread(row))]),
            value_n: 102,
            latency_mean_us: Some(mean),
            latency_p99_us: Some(mean * (2.0 + row.curve.unwrap().2 % 7.0 / 7.0)),
        }
    });
    Curve {
        name: name.into(),
        title: title.into(),
        axis: rows[0].curve.unwrap().1.into(),
        unit: rows[0].unit.into(),
        text: text.into(),
        points: points.collect(),
        knee_x,
    }
}

fn curves() -> Vec<Curve> {
    vec![
        curve(
            "read_4k",
            "4 KiB random reads",
            "4 KiB reads gain up to 16 in flight; beyond that they only wait longer.",
            Some(16.0),
        ),
        curve(
            "read_16k",
            "16 KiB random reads",
            "16 KiB reads gain up to 16 in flight.",
            Some(16.0),
        ),
        curve(
            "write_16k_files",
            "16 KiB random writes",
            "More files make no measurable difference: the lock of a file is no limit for aligned overwrites here.",
            None,
        ),
        curve(
            "database_commits",
            "Commits beside page writers",
            "Commits hold up to 2,000 pages/s; beyond that page writers take the device from the redo log.",
            Some(2_000.0),
        ),
    ]
}

fn losses() -> Vec<Loss> {
    let loss = |from: &str, to: &str, layer, pct: f64, text: &str| Loss {
        from: from.into(),
        to: to.into(),
        layer,
        loss_pct: pct,
        loss_pct_ci95: Some([pct - 1.1, pct + 1.2]),
        loss_pct_n: 3,
        basis: "paired_rungs".into(),
        text: text.into(),
    };
    vec![
        loss(
            "write_16k_prewritten",
            "write_16k_fallocated",
            Filesystem,
            73.98,
            "Writes into a fallocated file that was never written run at 26 % of overwrites: each one converts an extent.",
        ),
        loss(
            "path_direct",
            "path_buffered",
            FileApi,
            49.18,
            "Buffered writes with fsync run at half the rate of direct ones.",
        ),
        loss(
            "commit_fdatasync_overwrite",
            "commit_fdatasync",
            FileApi,
            48.86,
            "A commit that extends its file costs a second flush for the journal.",
        ),
    ]
}

fn findings() -> Vec<Finding> {
    let finding =
        |id: &str, kind, text: &str, layer, effect: Option<f64>, evidence: Value| Finding {
            id: id.into(),
            kind,
            text: text.into(),
            layer,
            effect_pct: effect,
            effect_pct_ci95: effect.map(|effect| [effect - 1.2, effect + 1.3]),
            effect_pct_n: 3,
            evidence: serde_json::from_value::<BTreeMap<String, Value>>(evidence).unwrap(),
        };
    vec![
        finding(
            "unwritten_extents",
            FindingKind::Loss,
            "Writes into fallocated space run at a quarter of the rate of overwrites, because every first write converts an extent.",
            Filesystem,
            Some(73.98),
            json!({"prewritten_iops": 16_180.2, "fallocated_iops": 4_210.7, "device_writes_per_request": 1.9, "to": "write_16k_fallocated"}),
        ),
        finding(
            "buffered_cost",
            FindingKind::Loss,
            "Buffered writes with fsync deliver half of what direct writes deliver.",
            FileApi,
            Some(49.18),
            json!({"direct_iops": 15_980.0, "buffered_iops": 8_120.3, "cpu_ns": 21_400, "to": "path_buffered"}),
        ),
        finding(
            "flush_rate",
            FindingKind::Sizing,
            "At a commit latency objective of 1 ms this volume flushes 2,000 pages/s, doublewrite included.",
            Filesystem,
            None,
            json!({"pages_per_s": 2000, "commit_mean_us": 577.0, "commit_p99_us": 1_731.0, "loss_pct_ci95": [1.0, 2.5]}),
        ),
        finding(
            "steal",
            FindingKind::Caution,
            "The hypervisor took 2 % of the processor time during the sustained write.",
            Host,
            None,
            json!({"steal_pct": 2.1}),
        ),
    ]
}

fn advice() -> Vec<Advice> {
    let advice =
        |setting: &str, value: &str, place: &str, why: &str, text: &str, risk, undo: &str| Advice {
            versions: (setting == "innodb_flush_method")
                .then(|| "MySQL, MariaDB before 11.0".into()),
            source: setting.starts_with("innodb").then(|| format!("MySQL manual: {setting}")),
            setting: setting.into(),
            value: value.into(),
            default: setting.contains("io_capacity").then(|| "200".into()),
            where_: place.into(),
            why: vec![why.into()],
            text: text.into(),
            risk,
            undo: undo.into(),
            expected: None,
        };
    vec![
        advice(
            "innodb_flush_method",
            "O_DIRECT",
            "my.cnf [mysqld]",
            "buffered_cost",
            "Direct writes deliver 15.9 K/s, buffered ones 8.1 K/s.",
            Risk::None,
            "remove the line and restart",
        ),
        advice(
            "innodb_io_capacity",
            "1600",
            "my.cnf [mysqld]",
            "flush_rate",
            "Up to 2,000 pages/s the 99th percentile of a commit stays under 2 ms.",
            Risk::None,
            "SET GLOBAL innodb_io_capacity = 200",
        ),
        advice(
            "innodb_io_capacity_max",
            "2000",
            "my.cnf [mysqld]",
            "flush_rate",
            "Beyond 2,000 pages/s commits slow down.",
            Risk::Wear,
            "SET GLOBAL innodb_io_capacity_max = 2000",
        ),
        advice(
            "innodb_flush_neighbors",
            "0",
            "my.cnf [mysqld]",
            "flush_rate",
            "A seek costs nothing measurable here, so neighbours only add writes.",
            Risk::None,
            "SET GLOBAL innodb_flush_neighbors = 1",
        ),
        advice(
            "noatime",
            "on",
            "mount option",
            "unwritten_extents",
            "Saves an inode update per read of a file's first block.",
            Risk::Durability,
            "mount -o remount,relatime /var/lib/mysql",
        ),
    ]
}

fn redo_table() -> Vec<RedoRow> {
    [1.0, 4.0, 16.0, 64.0]
        .iter()
        .map(|mib| RedoRow {
            redo_bytes_per_s: mib * 1_048_576.0,
            redo_capacity_bytes: (mib * 1_048_576.0 * 1800.0) as u64,
            drain_s: mib * 21.0,
        })
        .collect()
}

pub fn probe() -> ProbeDocument {
    ProbeDocument {
        host: super::host::host(),
        headline: vec![
            "A database here can commit 2,410 times per second one at a time and read 31.9 K pages of 16 KiB per second.".into(),
            "Half of the write rate is lost in the file API when writes are buffered, and three quarters in the file system when a file was allocated but never written.".into(),
            "Set innodb_flush_method = O_DIRECT and innodb_io_capacity = 1600; nothing else need change.".into(),
        ],
        rungs: rungs(),
        unknown: vec![],
        losses: losses(),
        compared: 14,
        undecided: vec![],
        small_losses: vec![],
        loss_at_most_pct: Some(8.0),
        loss_at_most_us: Some(310.0),
        findings: findings(),
        advice: advice(),
        redo_table: redo_table(),
        curves: curves(),
        verifications: vec![Verification {
            setting: "innodb_flush_method".into(),
            text: "16 KiB writes, buffered with fsync, then direct".into(),
            before: 8_104.2,
            before_ci95: Some([7_980.1, 8_228.3]),
            before_n: 3,
            after: 15_990.4,
            after_ci95: Some([15_870.2, 16_110.6]),
            after_n: 3,
            unit: "writes/s".into(),
            effect_pct: None,
            effect_pct_ci95: None,
            effect_pct_n: 0,
            confirmed: true,
        }],
        unavailable: vec![Unavailable::impossible(
            "the raw device below the file system",
            "reading /dev/sdb needs root",
            Some("run as root, or join the group disk".into()),
        )],
        bytes_written: 3_221_225_472,
        duration_s: 96.4,
        interrupted: false,
        incomplete: None,
        verdicts: Verdicts::none(),
        report: None,
    }
}
