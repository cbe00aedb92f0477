//! The OLTP family on the engine.

use std::sync::atomic::AtomicBool;

use iostrata_embedded::EmbeddedTarget;
use iostrata_workload::LoadCounts;
use iostrata_workload::oltp::{self, Distribution, Member, OltpSpec, OltpTerminals};

use crate::{opened, run};

#[test]
fn every_member_runs_and_leaves_as_many_rows() {
    let dir = tempfile::tempdir().unwrap();
    let of = |member| OltpSpec { tables: 2, table_size: 2_000, ..OltpSpec::new(member) };
    let target = opened(dir.path(), &of(Member::ReadWrite).schema());
    let spec = of(Member::ReadWrite);
    let missing = OltpTerminals::new(&target, spec.clone(), false).err().unwrap();
    assert!(missing.to_string().contains("sbtest1 is not there"), "{missing}");
    let prepared = oltp::prepare(&target, &spec, 2, &AtomicBool::new(false), &|_| {}).unwrap();
    assert_eq!(prepared, LoadCounts { rows: 4_000, rows_before: 0 });
    let twice = oltp::prepare(&target, &spec, 2, &AtomicBool::new(false), &|_| {});
    assert_eq!(twice.unwrap_err().code, "tables_exist");
    let changes = [Member::Insert, Member::Delete, Member::BulkInsert];
    for member in Member::ALL.into_iter().filter(|member| !changes.contains(member)) {
        for (distribution, _) in Distribution::ALL {
            let spec = OltpSpec { distribution, ..of(member) };
            let terminals = OltpTerminals::new(&target, spec, false).unwrap();
            assert_eq!(run(&terminals, 2, 20).settled, 80, "{}", member.name());
        }
    }
    let report = target.engine().check().unwrap();
    assert!(report.is_clean());
    let rows = report.tables.iter().filter(|table| table.name.starts_with("sbtest"));
    assert!(rows.map(|table| table.rows).all(|rows| rows == 2_000));
    for (member, is_more) in [(Member::Insert, true), (Member::Delete, false)] {
        let before = rows_of(&target);
        let terminals = OltpTerminals::new(&target, of(member), false).unwrap();
        assert_eq!(run(&terminals, 2, 20).settled, 80, "{}", member.name());
        let after = rows_of(&target);
        assert!(if is_more { after == before + 80 } else { after < before }, "{before} {after}");
    }
    assert_eq!(oltp::cleanup(&target, &spec).unwrap(), 2);
    target.close().unwrap();
}

fn rows_of(target: &EmbeddedTarget) -> u64 {
    let report = target.engine().check().unwrap();
    assert!(report.is_clean());
    let tables = report.tables.iter().filter(|table| !table.name.contains('.'));
    tables.filter(|table| table.name.starts_with("sbtest")).map(|table| table.rows).sum()
}

#[test]
fn bulk_inserts_go_on_where_the_tables_end() {
    let dir = tempfile::tempdir().unwrap();
    let spec = OltpSpec { tables: 2, threads: 4, ..OltpSpec::new(Member::BulkInsert) };
    let target = opened(dir.path(), &spec.schema());
    let prepared = oltp::prepare(&target, &spec, 2, &AtomicBool::new(false), &|_| {}).unwrap();
    assert_eq!(prepared.rows, 0);
    for runs in 1..=2 {
        let terminals = OltpTerminals::new(&target, spec.clone(), false).unwrap();
        assert_eq!(run(&terminals, 2, 5).settled, 20);
        assert_eq!(rows_of(&target), runs * 20_000);
    }
    target.close().unwrap();
}
