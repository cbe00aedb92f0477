//! What could not be made equal, printed with the figures.

use crate::engines::Engine;
use crate::plan::{Plan, Workload};

/// The notes on a plan with these engines.
pub fn of(plan: &Plan, engines: &[Engine]) -> Vec<&'static str> {
    let workload = plan.workload;
    let mut notes = Vec::new();
    if workload.is_writing() {
        notes.extend(engines.iter().filter_map(|&engine| durability(engine)));
        notes.push(
            "device B: what the whole device wrote, with the file system's journal and whatever \
             else uses it; only a device of its own makes it exact",
        );
    } else {
        notes.push(
            "reads: redb and sqlite hold one snapshot per thread; the others read the newest",
        );
        notes.push("sqlite has a cache per connection, so one per reading thread");
    }
    let is_form_chosen = engines
        .iter()
        .any(|engine| engine.is_lent_grouping() || engine.with_grouping().is_lent_grouping());
    if is_form_chosen && workload == Workload::Updates {
        notes.push("redb and fjall run here only with this program's grouping lent to them");
    }
    if is_form_chosen && workload == Workload::Space {
        notes.push("redb and fjall run here only as they come");
    }
    if workload == Workload::Updates || workload == Workload::Space {
        notes.push(if plan.is_direct {
            "rocksdb and iostrata keep the page cache out; redb, fjall and sqlite have it on top of \
             their cache"
        } else {
            "the file system refuses direct I/O: all engines have the page cache on top of theirs"
        });
        notes.push("fjall and rocksdb: a quarter of the memory is write buffers, the rest cache");
    }
    notes
}

fn durability(engine: Engine) -> Option<&'static str> {
    Some(match engine {
        Engine::Iostrata => {
            "iostrata: its own group commit, by leaders; redo of four times the memory, at most 512 MiB"
        }
        Engine::Redb => "redb: as it comes; every thread makes its own commits durable (Immediate)",
        Engine::RedbGroup => {
            "redb+group: this program's grouping lent to redb, which has none; one thread commits \
             Immediate, several commit None and share an Immediate commit of one of them"
        }
        Engine::Fjall => {
            "fjall: as it comes; every thread makes its own commits durable (persist(SyncData))"
        }
        Engine::FjallGroup => {
            "fjall+group: this program's grouping lent to fjall, which has none; threads share one \
             persist(SyncData)"
        }
        Engine::Sqlite => {
            "sqlite: WAL, synchronous=FULL, one connection for all writers; it has no group commit"
        }
        Engine::Rocksdb => "rocksdb: WAL with sync, its own group commit, no compression",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Choice;
    use std::time::Duration;

    #[test]
    fn only_engines_of_the_table_are_spoken_of() {
        let choice = Choice {
            engines: vec![Engine::Redb],
            workloads: Workload::ALL.to_vec(),
            is_recovering: false,
            is_ordering: false,
            soak: None,
            rounds: 1,
            window: Duration::from_secs(1),
            update_window: Duration::from_secs(1),
            space_window: Duration::from_secs(1),
            is_quick: true,
        };
        for plan in choice.plans() {
            let notes = of(&plan, &choice.engines);
            assert!(!notes.is_empty());
            assert!(!notes.iter().any(|note| note.starts_with("sqlite: WAL")));
            let is_writing = plan.workload.is_writing();
            assert_eq!(notes.iter().any(|note| note.starts_with("redb: ")), is_writing);
        }
    }
}
