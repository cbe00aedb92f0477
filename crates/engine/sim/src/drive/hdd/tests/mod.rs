//! The disks against their data sheets, and against their promises.

mod table;

use super::{Hdd, HddParameters};
use crate::bench::{Load, Outcome, Window, run};

/// What a whole disk answers to a load, in so many seconds of its own time.
fn outcome(parameters: HddParameters, load: &Load, span_s: f64) -> Outcome {
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 7);
    run(&mut disk, load, Window::seconds(span_s / 5.0, span_s), 11).expect("a load that fits")
}
