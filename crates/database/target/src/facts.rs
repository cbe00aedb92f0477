//! What a target says of itself.

use iostrata_run::{TransactionDurability, TransactionTarget};

/// What a target says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetFacts {
    /// Without secrets: as the user named it.
    pub name: String,
    /// `engine`, `mysql`, `mariadb`, `percona`, `tidb`, or what an unknown one calls itself.
    pub flavour: String,
    /// As it calls its version itself.
    pub version: String,
    /// What a commit survives.
    pub durability: TransactionDurability,
    /// Every setting, by name, in order.
    pub settings: Vec<(String, String)>,
}

impl TargetFacts {
    /// Which target it is.
    pub fn identity(&self) -> TransactionTarget {
        let Self { name, flavour, version, .. } = self.clone();
        TransactionTarget { name, flavour, version }
    }
}
