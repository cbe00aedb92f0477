//! Inserts into random places of indexes: on the engine, and what its check finds.

use std::sync::atomic::Ordering;

use iostrata_database::target::{Access, Target, Value};
use iostrata_workload::CheckResult;
use iostrata_workload::insert::{self, InsertSpec, InsertTerminals};

use crate::stress::{GO_ON, alter, broken, set};
use crate::{opened, run};

pub fn check(target: &dyn Target) -> CheckResult {
    insert::check(target, &mut |_| {}).unwrap()
}

#[test]
fn rows_are_loaded_and_inserted_and_every_index_leads_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let target = opened(dir.path(), &insert::schema());
    let spec = InsertSpec { rows: 3_000, ..InsertSpec::default() };
    let early = InsertTerminals::new(&target, &spec, false).err().unwrap();
    assert!(early.to_string().contains("load them with `insert prepare`"), "{early}");
    let prepared = insert::prepare(&target, &spec, false, &GO_ON, &|_| {}).unwrap();
    assert_eq!((prepared.rows, insert::rows(&target).unwrap()), (3_000, 3_000));
    let again = insert::prepare(&target, &spec, false, &GO_ON, &|_| {}).unwrap();
    assert_eq!((again.rows, again.rows_before), (0, 3_000));
    assert!(check(&target).is_ok(), "{:?}", check(&target));
    let mut rows = 3_000;
    for (rows_per_commit, turns) in [(1, 100), (7, 20), (2_500, 1)] {
        let spec = InsertSpec { rows_per_commit, seed: rows_per_commit.into(), ..spec.clone() };
        let source = InsertTerminals::new(&target, &spec, false).unwrap();
        let done = run(&source, 2, turns);
        rows += done.settled * u64::from(rows_per_commit);
        assert_eq!(
            source.committed().load(Ordering::Relaxed),
            done.settled * u64::from(rows_per_commit)
        );
        assert_eq!(insert::rows(&target).unwrap(), rows, "{rows_per_commit}");
    }
    let checked = check(&target);
    assert_eq!((broken(&checked), checked.rows), (vec![], rows));
    assert!(target.engine().check().unwrap().is_clean());

    damage(&target);
    assert!(insert::cleanup(&target).unwrap() && !insert::cleanup(&target).unwrap());
    target.close().unwrap();
}

/// A key that is not the string's, and a loaded row that is gone.
pub fn damage(target: &dyn Target) {
    let schema = insert::schema();
    let key = [Value::Int(5), Value::Int(77)];
    alter(target, schema.clone(), "insert_rows", set("insert_rows", "b1", 1, &schema), &key);
    let found = check(target);
    assert_eq!(broken(&found), [1]);
    assert!(found.conditions[0].told[0].starts_with("row 5:"), "{found:?}");
    alter(target, schema, "insert_rows", Access::Delete, &[Value::Int(6)]);
    assert_eq!(broken(&check(target)), [1, 2]);
}

#[test]
fn an_empty_table_is_a_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let target = opened(dir.path(), &insert::schema());
    let spec = InsertSpec { rows: 0, ..InsertSpec::default() };
    insert::prepare(&target, &spec, false, &GO_ON, &|_| {}).unwrap();
    assert_eq!(insert::rows(&target).unwrap(), 0);
    let source = InsertTerminals::new(&target, &spec, false).unwrap();
    assert_eq!(run(&source, 2, 10).settled, 40);
    assert_eq!(insert::rows(&target).unwrap(), 40);
    assert!(check(&target).is_ok());
}
