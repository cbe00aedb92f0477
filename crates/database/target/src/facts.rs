//! What a target says of itself.

/// What a commit survives, as the target's settings have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// `innodb_flush_log_at_trx_commit`, or the engine's setting of the same meaning.
    pub flush_log_at_commit: Option<u8>,
    /// Whether pages are written twice; a server's own word for it.
    pub doublewrite: Option<String>,
    /// How data files are written.
    pub flush_method: Option<String>,
    /// Whether there is a binary log.
    pub binlog: Option<bool>,
    /// `sync_binlog`.
    pub sync_binlog: Option<u64>,
}

/// What a target says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetFacts {
    /// Without secrets: as the user named it.
    pub name: String,
    /// `engine`, `mysql`, `mariadb`, `percona`, `tidb`, or what an unknown one calls itself.
    pub flavour: String,
    /// As it calls its version itself.
    pub version: String,
    /// What a commit survives.
    pub durability: Durability,
    /// Every setting, by name, in order.
    pub settings: Vec<(String, String)>,
}
