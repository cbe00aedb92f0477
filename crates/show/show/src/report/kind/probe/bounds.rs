//! Transactions and what the rungs below would allow of them.

use iostrata_run::{ProbeDocument, Rung, TransactionBound};

use crate::report::cell::{count, figure, interval, optional, text, value};
use crate::report::document::{Block, Blocks, On, Table};

/// Every rung of transactions with its bound, then what each resource would allow.
pub(super) fn bounds(probe: &ProbeDocument) -> Option<Blocks> {
    let rungs: Vec<(&Rung, &TransactionBound)> =
        probe.rungs.iter().filter_map(|rung| Some((rung, rung.bound.as_ref()?))).collect();
    if rungs.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    body.say(
        "What the storage and the processors below would allow, from the rungs above and from what \
         one transaction uses by the database's own counters. The resource that allows the least \
         binds. Pages that were changed and are not written yet are not counted.",
    );
    body.table(On::ALL, reached(&rungs));
    for (rung, bound) in &rungs {
        let title = format!("What each resource allows: {}", rung.title);
        body.folded(On::FILES, title, Block::Table(resources(bound)));
    }
    Some(body)
}

fn reached(rungs: &[(&Rung, &TransactionBound)]) -> Table {
    Table::of(rungs)
        .words("Transactions", |(rung, _)| text(&rung.title))
        .numbers("Reached", |(rung, _)| {
            figure(rung.value, rung.value_ci95, rung.value_n, &rung.unit)
        })
        .numbers("Allowed", |(_, bound)| {
            figure(bound.value, bound.value_ci95, bound.value_n, &bound.unit)
        })
        .words("Binds", |(_, bound)| text(bound.resource.title()))
        .numbers("Share", |(_, bound)| value(bound.reached_pct, "percent"))
        .numbers_on(On::FILES, "95 % interval", |(_, bound)| {
            interval(bound.reached_pct, bound.reached_pct_ci95, "percent")
        })
        .numbers_on(On::FILES, "n", |(_, bound)| count(bound.reached_pct_n))
        .words_on(On::FILES, "Compared", |(_, bound)| text(bound.basis.replace('_', " ")))
        .into()
}

fn resources(bound: &TransactionBound) -> Table {
    Table::of(&bound.resources)
        .words("Resource", |one| text(one.name.title()))
        .numbers("One transaction uses", |one| optional(one.per_txn, &one.unit))
        .numbers("Allows", |one| optional(one.allows_per_s, &bound.unit))
        .numbers("95 % interval", |one| {
            interval(one.allows_per_s, one.allows_per_s_ci95, &bound.unit)
        })
        .words("By", |one| text(one.rungs.join(", ")))
        .into()
}
