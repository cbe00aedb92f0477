//! Which layer a stack's time belongs to, and why a thread sleeps. Pure.
//!
//! The innermost function that belongs to a layer decides; functions that every layer calls belong
//! to none. Time in a lock is the lock's, and who takes it is kept beside. Two file systems on top
//! of each other (a loop device over a file) are not told apart.
//!
//! Of a sleeping thread, from the innermost function outwards, what merely puts to sleep is passed
//! over; the first other function is the reason. Who asked for it is the first function further out
//! that is neither part of a lock nor one that only passes the wait on.

use iostrata_run::host::KernelLayer;

use crate::profile::catalogue;
use crate::profile::kallsyms::Function;

/// Where a stack belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayerPlace {
    pub(crate) layer: KernelLayer,
    /// For a lock: the layer that takes it.
    pub(crate) taken_in: Option<KernelLayer>,
}

/// Where a stack belongs, given from the innermost function to the outermost.
pub(crate) fn place(stack: &[Function<'_>]) -> LayerPlace {
    let mut layers =
        stack.iter().filter_map(|function| catalogue::layer(function.name, function.module));
    let layer = layers.next().unwrap_or(KernelLayer::Other);
    let taken_in = (layer == KernelLayer::Lock)
        .then(|| layers.find(|&outer| outer != KernelLayer::Lock).unwrap_or(KernelLayer::Other));
    LayerPlace { layer, taken_in }
}

/// The reason of a thread that could have gone on and had no processor.
const PREEMPTED: &str = "(preempted)";
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

/// Functions separated by blanks, innermost first; `name@module` for a module's function.
#[cfg(test)]
pub(crate) fn stack(text: &str) -> Vec<Function<'_>> {
    let function = |word| match str::split_once(word, '@') {
        Some((name, module)) => Function { name, module },
        None => Function { name: word, module: iostrata_run::host::KERNEL_MODULE },
    };
    text.split_ascii_whitespace().map(function).collect()
}

#[cfg(test)]
mod tests {
    use KernelLayer::*;

    use super::*;

    /// Innermost first, as recorded; `name@module` for a module's function.
    #[track_caller]
    fn check(text: &str, layer: KernelLayer, taken_in: Option<KernelLayer>) {
        assert_eq!(place(&stack(text)), LayerPlace { layer, taken_in }, "{text}");
    }

    #[test]
    fn a_direct_write_through_ext4() {
        let above = "__iomap_dio_rw iomap_dio_rw ext4_dio_write_iter ext4_file_write_iter \
                     vfs_write __x64_sys_pwrite64 do_syscall_64 entry_SYSCALL_64_after_hwframe";
        let below = |inner: &str| format!("{inner} {above}");
        check(above, Filesystem, None);
        check("vfs_write __x64_sys_pwrite64 do_syscall_64", Vfs, None);
        check("do_syscall_64 entry_SYSCALL_64_after_hwframe", SystemCall, None);
        check(&below("kmem_cache_alloc mempool_alloc bio_alloc_bioset"), Block, None);
        check(
            &below("blk_mq_submit_bio submit_bio_noacct_nocheck iomap_dio_bio_iter"),
            Block,
            None,
        );
        check(&below("virtqueue_add_split virtqueue_add_sgs virtio_queue_rq"), Driver, None);
        check(&below("_raw_spin_unlock_irqrestore vm_notify virtqueue_notify"), Driver, None);
        check(&below("dd_insert_requests blk_mq_dispatch_plug_list"), Scheduler, None);
        check(&below("throtl_add_bio_tg __blk_throtl_bio submit_bio_noacct"), Limit, None);
        check(&below("memset jbd2_journal_dirty_metadata __ext4_journal_start_sb"), Journal, None);
        check(
            &below("finish_task_switch.isra.0 __schedule schedule io_schedule"),
            TaskSwitch,
            None,
        );
    }

    #[test]
    fn a_lock_remembers_who_takes_it() {
        let spin = "native_queued_spin_lock_slowpath _raw_spin_lock_irqsave";
        check(&format!("{spin} rwsem_down_write_slowpath down_write"), Lock, Some(Other));
        check(
            "osq_lock rwsem_down_write_slowpath down_write ext4_dio_write_iter",
            Lock,
            Some(Filesystem),
        );
        check("down_write xfs_ilock@xfs xfs_file_write_iter@xfs", Lock, Some(Filesystem));
        check(&format!("{spin} dd_dispatch_request"), Lock, Some(Scheduler));
        check(&format!("{spin} xlog_grant_head_check@xfs"), Lock, Some(Journal));
        check("mutex_spin_on_owner __mutex_lock loop_process_work@loop", Lock, Some(Driver));
    }

    #[test]
    fn the_names_of_2012() {
        check("__ticket_spin_lock", Lock, Some(Other));
        check("__ticket_spin_lock _spin_lock_irqsave xfs_ilock", Lock, Some(Filesystem));
        check("intel_idle cpuidle_idle_call cpu_idle start_secondary", Idle, None);
        check("kfio_destroy_disk@iomemory_vsl", Driver, None);
        check(
            "ifio_8f406.db9914f4ba64991d41d2470250b4d3fb4c6.3.1.5.126@iomemory_vsl",
            Driver,
            None,
        );
        check("native_write_cr0 __switch_to", TaskSwitch, None);
        check("find_busiest_group load_balance", TaskSwitch, None);
        check("native_write_msr_safe", Interrupt, None);
        check("do_direct_IO __blockdev_direct_IO_newtrunc ext4_ind_direct_IO", Filesystem, None);
    }

    #[test]
    fn other_ways_through_the_kernel() {
        check("pv_native_safe_halt default_idle default_idle_call do_idle", Idle, None);
        check("virtblk_done vring_interrupt __handle_irq_event_percpu default_idle", Driver, None);
        check("handle_softirqs __irq_exit_rcu sysvec_apic_timer_interrupt", Interrupt, None);
        check("copy_user_generic filemap_read ext4_file_read_iter", PageCache, None);
        check("io_issue_sqe io_submit_sqes __do_sys_io_uring_enter", SystemCall, None);
        check("io_submit_one __x64_sys_io_submit", SystemCall, None);
        check("crc32c_x86_3way jbd2_journal_commit_transaction kjournald2", Journal, None);
        check("memcpy loop_rootcg_workfn process_one_work worker_thread kthread", Driver, None);
        check("worker_thread kthread ret_from_fork_asm", Other, None);
        check("btrfs_search_slot btrfs_lookup_csum", Filesystem, None);
        check("", Other, None);
    }
}

#[cfg(test)]
mod wait_tests {
    use KernelLayer::*;

    use super::*;

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
