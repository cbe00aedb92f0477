//! What the sessions of a target wait for, as far as one look at all of them tells.

/// Sessions by what they wait for at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionWaits {
    /// The lock that stops all writers: FLUSH TABLES WITH READ LOCK, a backup.
    pub global_lock: u64,
    /// Tables that others define anew, or still use.
    pub metadata_lock: u64,
    /// Other members of a cluster, which are behind.
    pub flow_control: u64,
    /// Replicas that are to acknowledge a commit.
    pub semi_sync: u64,
    /// Room on a disk.
    pub disk_space: u64,
}
