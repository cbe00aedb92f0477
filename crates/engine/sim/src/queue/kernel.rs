//! What a kernel makes of a queue size that it is asked for.
//!
//! Sources: Linux 2.6.18 block/ll_rw_blk.c (`queue_requests_store`: at least 4, no upper bound, one
//! limit for reads and one for writes); Linux 5 and 6 block/blk-mq.c (`blk_mq_update_nr_requests`:
//! without a scheduler no more than the device's tags, with one no more than `MAX_SCHED_RQ`, one
//! limit for both directions). It does not know what `nr_requests` does; that is the queue's part.

use iostrata_run::KernelThen;

/// The order in which waiting requests go to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheduler {
    /// As they came; `noop` in 2009. Neighbours are still merged.
    None,
    /// By address, with a bound on how long one may wait; `mq-deadline` today.
    Deadline,
}

/// Fewest requests that any kernel takes (`BLKDEV_MIN_RQ`).
pub const REQUESTS_MIN: u32 = 4;
/// Requests of a queue when nobody asks (`BLKDEV_MAX_RQ`).
pub const REQUESTS_DEFAULT: u32 = 128;
/// Most requests of a scheduler today: 16 times the default (`MAX_SCHED_RQ`); read back as 2,048 on
/// a virtio disk when 100,000 were asked for.
pub const SCHEDULED_REQUESTS_MAX: u32 = 2048;

/// What the kernel takes when it is asked for `asked` requests, on a device with so many `tags`.
pub fn requests_taken(kernel: KernelThen, scheduler: Scheduler, tags: u32, asked: u32) -> u32 {
    let most = match (kernel, scheduler) {
        (KernelThen::Y2009, _) => u32::MAX,
        (KernelThen::Today, Scheduler::None) => tags.max(REQUESTS_MIN),
        (KernelThen::Today, Scheduler::Deadline) => SCHEDULED_REQUESTS_MAX,
    };
    asked.clamp(REQUESTS_MIN, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_todays_kernel_has_an_upper_bound() {
        let taken = |kernel, scheduler, asked| requests_taken(kernel, scheduler, 64, asked);
        assert_eq!(taken(KernelThen::Y2009, Scheduler::Deadline, 100_000), 100_000);
        assert_eq!(taken(KernelThen::Y2009, Scheduler::None, 100_000), 100_000);
        assert_eq!(taken(KernelThen::Today, Scheduler::Deadline, 100_000), 2_048);
        assert_eq!(taken(KernelThen::Today, Scheduler::Deadline, 1_024), 1_024);
        assert_eq!(taken(KernelThen::Today, Scheduler::None, 100_000), 64);
        assert_eq!(taken(KernelThen::Today, Scheduler::None, 32), 32);
        assert_eq!(requests_taken(KernelThen::Today, Scheduler::None, 1, 128), REQUESTS_MIN);
        assert_eq!(taken(KernelThen::Y2009, Scheduler::None, 1), REQUESTS_MIN);
    }
}
