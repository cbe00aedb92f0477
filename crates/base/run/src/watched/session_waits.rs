//! What the sessions of a target wait for, as one look at all of them shows.

/// Sessions by what they wait for at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionWaits {
    /// The lock that stops all writers: FLUSH TABLES WITH READ LOCK, a backup.
    pub global_lock: u64,
    /// Tables whose definition others change, or that they still use.
    pub metadata_lock: u64,
    /// Other members of a cluster, which are behind.
    pub flow_control: u64,
    /// Replicas that are to acknowledge a commit.
    pub semi_sync: u64,
    /// Room on a disk.
    pub disk_space: u64,
    /// A processor: tasks of the target that waited for one at a time, where it is on this host.
    pub processor: u64,
    /// Share of the time in which its tasks could have run that they waited for a processor, in
    /// percent.
    pub processor_waited_pct: u64,
    /// Uninterruptible sleep, as for I/O: so many tasks of the target at every look, where it is on
    /// this host.
    pub uninterruptible: u64,
    /// Transactions in the longest queue of a member of its replication group, and beyond how many
    /// flow control holds writers back; 0 without such a group.
    pub group_queue: u64,
    /// See above.
    pub group_queue_limit: u64,
}
