//! Changes in words, for a plan that is shown before anything happens.
//!
//! Invariant: one line per change; looking for the present value alters nothing.

use crate::kind::Change;
use crate::platform::Platform;
use crate::system::System;

/// The plan: each change in one line, with the present value, if any.
pub fn plan(changes: &[Change]) -> Vec<String> {
    let platform = System::new();
    changes.iter().map(|change| line(&platform, change)).collect()
}

/// A change with the present value.
pub(crate) fn line(platform: &dyn Platform, change: &Change) -> String {
    match change.present(platform) {
        Some(now) => format!("{} (now {now})", change.describe()),
        None => change.describe(),
    }
}
