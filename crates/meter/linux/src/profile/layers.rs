//! Which layer a stack's time belongs to.
//!
//! Rule: the innermost function that belongs to a layer decides; functions that every layer calls
//! belong to none. Time in a lock is the lock's, and who takes it is kept beside. Two file systems
//! on top of each other (a loop device over a file) are not told apart. Pure.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::example::stack;
    use KernelLayer::*;

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
