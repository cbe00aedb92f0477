//! What a check reports about files that were damaged while the engine was closed.

use std::path::Path;

use iostrata_engine::{CheckReport, Engine, EngineError, OpenError, Settings};

use crate::common::engine::How;

const ROWS: u32 = 300;

fn settings() -> Settings {
    How::with(&[("data_files", "2"), ("redo_log_capacity", "1M")]).settings()
}

/// A closed engine with two tables of two levels.
fn made() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let engine = Engine::open(home.path(), settings()).unwrap();
    for name in ["first", "second"] {
        let table = engine.create_table(name).unwrap();
        for row in 0..ROWS {
            let mut batch = engine.batch();
            batch.put(&table, &row.to_be_bytes(), &[9; 100]).unwrap();
            batch.commit().unwrap();
        }
    }
    engine.close().unwrap();
    home
}

/// Alters one byte of a page.
fn flip(home: &Path, page: u64) {
    let path = home.join(format!("data-{:02}", page % 2));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(page / 2 * 4096 + 300) as usize] ^= 0x41;
    std::fs::write(&path, bytes).unwrap();
}

fn check(home: &Path) -> CheckReport {
    Engine::options().settings(settings()).check(home).unwrap().0
}

fn rows(report: &CheckReport, name: &str) -> Option<u64> {
    report.tables.iter().find(|table| table.name == name).map(|table| table.rows)
}

#[test]
fn a_damaged_page_of_any_kind_is_in_the_report_and_the_rest_is_checked() {
    let whole = made();
    assert!(check(whole.path()).is_clean());
    // Super page, map, catalogue, the root of the first table, and of the second.
    for page in [0, 1, 2, 3] {
        let home = made();
        flip(home.path(), page);
        // Another one, which must be found as well.
        flip(home.path(), 6);
        let report = check(home.path());
        for page in [page, 6] {
            let told = report.problems.iter().filter(|problem| problem.page == page);
            let told: Vec<_> = told.filter(|problem| problem.what.contains("checksum")).collect();
            assert_eq!(told.len(), 1, "page {page}: {:?}", report.problems);
        }
        if page < 2 {
            let found = ["first", "second"].map(|name| rows(&report, name).unwrap());
            assert!(found.iter().sum::<u64>() > u64::from(ROWS), "{page}: {found:?}");
        }
        assert!(report.tables.len() >= 3 || page == 2, "{page}: {:?}", report.tables);
        assert!(report.tables.iter().map(|table| table.rows).sum::<u64>() > 250, "{page}");
    }
}

#[test]
fn what_lies_below_a_lost_root_is_counted_in_one_line() {
    let home = made();
    flip(home.path(), 3);
    let report = check(home.path());
    let first = report.tables.iter().find(|table| table.name == "first").unwrap();
    assert_eq!((first.levels, first.rows, first.lost_pages), (0, 0, 1));
    assert_eq!(rows(&report, "second"), Some(u64::from(ROWS)));
    let [torn, below] = report.problems.as_slice() else { panic!("{:?}", report.problems) };
    assert!(torn.what.contains("checksum") && below.page == 3, "{below:?}");
    let pages: u64 = below.what.split(' ').next().unwrap().parse().unwrap();
    assert!(pages > 8 && below.what.contains("first"), "{below:?}");
}

#[test]
fn a_data_file_that_was_cut_is_named_also_where_the_lost_pages_were_free() {
    for left in [1, 4096, 5000] {
        let home = made();
        let path = home.path().join("data-01");
        let whole = std::fs::metadata(&path).unwrap().len();
        let bytes = whole - left;
        std::fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
        for _again in 0..2 {
            let report = check(home.path());
            let [cut] = report.problems.as_slice() else { panic!("{:?}", report.problems) };
            let is_said = cut.what.contains(&format!("data-01 is {bytes} bytes"));
            let is_odd = cut.what.contains("not a multiple of the page of 4096");
            assert!(is_said && is_odd == (left != 4096), "{cut:?}");
        }
    }
}

#[test]
fn one_copy_of_the_redo_control_is_enough_and_without_both_the_way_out_is_told() {
    for (slots, is_opened) in [(0..1, true), (1..2, true), (0..2, false)] {
        let home = made();
        let path = home.path().join("redo-control");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[slots.start * 4096..slots.end * 4096].fill(0);
        std::fs::write(&path, bytes).unwrap();
        match Engine::options().settings(settings()).check(home.path()) {
            Ok((report, _)) => assert!(is_opened && report.is_clean(), "{:?}", report.problems),
            Err(error) => {
                assert!(!is_opened, "{slots:?}: {error}");
                assert!(matches!(error, EngineError::Open(OpenError::Damaged(_))), "{error}");
                assert!(error.to_string().contains("backup"), "{error}");
            }
        }
    }
}
