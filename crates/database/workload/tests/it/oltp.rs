//! The OLTP family on the engine.

use std::sync::atomic::AtomicBool;

use iostrata_workload::Loaded;
use iostrata_workload::oltp::{self, Distribution, Member, OltpSpec, OltpTerminals};

use crate::{opened, run};

#[test]
fn every_member_runs_and_leaves_as_many_rows() {
    let dir = tempfile::tempdir().unwrap();
    let of = |member| OltpSpec { tables: 2, table_size: 2_000, ..OltpSpec::new(member) };
    let target = opened(dir.path(), &oltp::schema(2));
    let spec = of(Member::ReadWrite);
    let missing = OltpTerminals::new(&target, spec.clone(), false).err().unwrap();
    assert!(missing.to_string().contains("sbtest1 is not there"), "{missing}");
    let prepared = oltp::prepare(&target, &spec, 2, &AtomicBool::new(false), &|_| {}).unwrap();
    assert_eq!(prepared, Loaded { rows: 4_000, rows_before: 0 });
    let twice = oltp::prepare(&target, &spec, 2, &AtomicBool::new(false), &|_| {});
    assert_eq!(twice.unwrap_err().code, "tables_exist");
    for member in Member::ALL {
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
    assert_eq!(oltp::cleanup(&target, 2).unwrap(), 2);
    target.close().unwrap();
}
