//! How a queue was simulated, and what the model leaves out.

use std::collections::BTreeMap;

use iostrata_sim::insert::InsertOutcome;
use serde_json::{Value, json};

/// Figures of the method by name, the unit in the name.
pub fn figures(outcomes: &[Vec<InsertOutcome>]) -> BTreeMap<String, Value> {
    let all = || outcomes.iter().flatten().flat_map(|outcome| &outcome.points);
    let measured_s: f64 = all().map(|point| point.measured_s).sum();
    let windows = all().map(|point| 1 + usize::from(point.reader.is_some())).sum::<usize>();
    BTreeMap::from([
        ("windows".to_owned(), json!(windows)),
        ("virtual_time_of_the_load_alone_s".to_owned(), json!(measured_s)),
    ])
}

/// What the model leaves out, in sentences.
pub fn limits() -> Vec<String> {
    [
        "On flash under the kernel of 2009 a small queue lets the load run in either of two courses, \
         with the writer stopped by each journal commit or not; figures there are not steady.",
        "Today's bounds are examples that were measured: a scheduler takes at most 2,048 requests on \
         a virtio disk, without one the device's own number of commands is the bound.",
        "The kernel's choice of pages to forget is taken as the least recently used; the few reads \
         that the post shows at 77 million rows do not follow from that.",
        "Devices are models with parameters from data sheets, not the post's own; docs/disks.md has \
         them.",
        "The post's mirrored pair is modelled as one of its disks with that disk's own write cache, \
         since both do every write. Behind a controller with a protected cache of its own \
         (raid10-hdd) a pair behaves otherwise.",
        "At each index size the load is simulated once it is steady; the way from an empty table to \
         there is put together from those rates.",
        "Processor time, locks of the server and the table's own reads of data beyond the caches \
         are not in the model.",
    ]
    .map(str::to_owned)
    .to_vec()
}
