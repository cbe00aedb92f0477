//! Why a thread sleeps.
//!
//! Rule: from the innermost function outwards, what merely puts to sleep is passed over; the first
//! other function is the reason. Who asked for it is the first function further out that is neither
//! part of a lock nor one that only passes the wait on. Pure.

use iostrata_run::host::KernelLayer;

use crate::profile::catalogue;
use crate::profile::kallsyms::Function;
use crate::profile::layers::place;

/// The reason of a thread that could have gone on and had no processor.
pub(crate) const PREEMPTED: &str = "(preempted)";
/// The reason of a stack that tells none.
const UNKNOWN: &str = "(unknown)";

/// Why a thread sleeps, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) symbol: String,
    pub(crate) caller: Option<String>,
    pub(crate) layer: KernelLayer,
    /// For a lock: the layer that takes it.
    pub(crate) taken_in: Option<KernelLayer>,
}

/// The reason that a stack shows, given from the innermost function outwards; absent for a thread
/// that has ended.
pub(crate) fn reason(stack: &[Function<'_>], preempted: bool) -> Option<Reason> {
    if stack.iter().any(|function| catalogue::is_last_step(function.name)) {
        return None;
    }
    let plain = |symbol: &str, layer| Reason {
        symbol: symbol.to_owned(),
        caller: None,
        layer,
        taken_in: None,
    };
    if preempted {
        return Some(plain(PREEMPTED, KernelLayer::TaskSwitch));
    }
    let asleep = stack.iter().take_while(|function| catalogue::is_wait_helper(function.name));
    let rest = &stack[asleep.count()..];
    let Some(waits) = rest.first() else {
        return Some(plain(UNKNOWN, KernelLayer::Other));
    };
    let layer = catalogue::wait_layer(waits.name).unwrap_or_else(|| place(rest).layer);
    let outer = asking(&rest[1..], layer);
    Some(Reason {
        caller: outer.first().map(|function| function.name.to_owned()),
        taken_in: (layer == KernelLayer::Lock).then(|| place(outer).layer),
        ..plain(waits.name, layer)
    })
}

/// The part of a stack that begins with who asked for a wait of this layer.
fn asking<'a, 'b>(stack: &'a [Function<'b>], layer: KernelLayer) -> &'a [Function<'b>] {
    let between = stack.iter().take_while(|function| {
        catalogue::is_go_between(function.name)
            || layer == KernelLayer::Lock
                && catalogue::layer(function.name, function.module) == Some(KernelLayer::Lock)
    });
    &stack[between.count()..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::example::stack;
    use KernelLayer::*;

    #[track_caller]
    fn check(text: &str, symbol: &str, caller: &str, layer: KernelLayer) -> Option<KernelLayer> {
        let found = reason(&stack(&format!("__schedule schedule {text}")), false).unwrap();
        let expected = (symbol, Some(caller), layer);
        assert_eq!((found.symbol.as_str(), found.caller.as_deref(), found.layer), expected);
        found.taken_in
    }

    #[test]
    fn a_file_lock_names_the_write_that_wants_it() {
        let lock = "schedule_preempt_disabled rwsem_down_write_slowpath down_write";
        let below = check(
            &format!("{lock} ext4_dio_write_iter ext4_file_write_iter vfs_write"),
            "rwsem_down_write_slowpath",
            "ext4_dio_write_iter",
            Lock,
        );
        assert_eq!(below, Some(Filesystem));
        let below = check(
            &format!("{lock} xfs_ilock xfs_ilock_iocb xfs_file_dio_write_aligned"),
            "rwsem_down_write_slowpath",
            "xfs_file_dio_write_aligned",
            Lock,
        );
        assert_eq!(below, Some(Filesystem));
    }

    #[test]
    fn waits_for_device_journal_tags_and_limits() {
        let sync = "blk_io_schedule __iomap_dio_rw iomap_dio_rw ext4_file_read_iter";
        check(&format!("io_schedule {sync}"), "__iomap_dio_rw", "ext4_file_read_iter", Device);
        let uring = "io_cqring_wait __do_sys_io_uring_enter do_syscall_64";
        check(uring, "io_cqring_wait", "__do_sys_io_uring_enter", Device);
        check(
            "jbd2_log_wait_commit ext4_sync_file do_fsync",
            "jbd2_log_wait_commit",
            "ext4_sync_file",
            Journal,
        );
        check(
            "xlog_wait_on_iclog xfs_log_force_seq",
            "xlog_wait_on_iclog",
            "xfs_log_force_seq",
            Journal,
        );
        let tag = "io_schedule blk_mq_get_tag __blk_mq_alloc_requests blk_mq_submit_bio";
        check(tag, "blk_mq_get_tag", "blk_mq_submit_bio", Block);
        check(
            "io_schedule rq_qos_wait wbt_wait __rq_qos_throttle",
            "rq_qos_wait",
            "wbt_wait",
            Limit,
        );
        let page = "io_schedule folio_wait_bit_common folio_wait_writeback \
                    __filemap_fdatawait_range file_write_and_wait_range";
        check(page, "folio_wait_bit_common", "file_write_and_wait_range", PageCache);
        let flush = "schedule_timeout wait_for_completion_io_timeout submit_bio_wait \
                     blkdev_issue_flush ext4_sync_file";
        check(flush, "submit_bio_wait", "ext4_sync_file", Device);
        check(
            "futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex",
            "futex_do_wait",
            "__x64_sys_futex",
            User,
        );
    }

    #[test]
    fn stacks_without_a_reason() {
        let preempted = reason(&stack("__schedule preempt_schedule_irq vfs_write"), true).unwrap();
        assert_eq!((preempted.symbol.as_str(), preempted.layer), (PREEMPTED, TaskSwitch));
        let unknown = reason(&[], false).unwrap();
        assert_eq!((unknown.symbol.as_str(), unknown.layer), (UNKNOWN, Other));
        assert_eq!(reason(&stack("__schedule do_task_dead do_exit"), false), None);
    }
}
