//! What a sleeping thread waits for.

use iostrata_run::host::KernelLayer::{
    Block, Device, Filesystem, Journal, Limit, Lock, PageCache, User,
};

use super::LayerTable;

/// Functions that wait for something other than their own layer, or that only ever wait.
pub(super) const TABLE: LayerTable = &[
    (
        Device,
        &[
            "__iomap_dio_rw",
            "iomap_dio_rw",
            "do_blockdev_direct_IO",
            "__blockdev_direct_IO",
            "dio_await_*",
            "blkdev_direct_IO*",
            "__blkdev_direct_IO*",
            "submit_bio_wait",
            "bio_await*",
            "blkdev_issue_flush",
            "blk_execute_rq",
            "io_cqring_wait",
            "io_iopoll_*",
            "read_events",
            "do_io_getevents",
            "__wait_on_buffer",
            "xfs_buf_iowait",
            "read_extent_buffer_pages",
        ],
    ),
    (Block, &["blk_mq_get_tag", "__blk_mq_alloc_requests", "bio_queue_enter", "get_request"]),
    (Limit, &["rq_qos_wait", "wbt_wait", "blk_throtl_*", "blkcg_maybe_throttle_*"]),
    (
        Journal,
        &[
            "jbd2_*",
            "xlog_*",
            "xfs_log_force*",
            "wait_transaction_*",
            "start_this_handle",
            "add_transaction_credits",
            "btrfs_sync_log",
            "btrfs_commit_transaction*",
            "wait_current_trans",
            "wait_log_commit",
        ],
    ),
    (PageCache, &["folio_wait_*", "__folio_lock*", "wait_on_page_*", "balance_dirty_pages*"]),
    (
        Filesystem,
        &["__inode_dio_wait", "inode_dio_wait*", "btrfs_wait_ordered_*", "btrfs_start_ordered_*"],
    ),
    (
        Lock,
        &[
            "rwsem_down_*",
            "__mutex_lock*",
            "__down",
            "__down_*",
            "___down_*",
            "percpu_rwsem_wait",
            "__percpu_down_*",
            "rt_mutex_*",
        ],
    ),
    (
        User,
        &[
            "futex_*",
            "__futex_*",
            "do_futex",
            "hrtimer_nanosleep",
            "do_nanosleep",
            "common_nsleep*",
            "ep_poll",
            "do_epoll_wait",
            "do_sys_poll",
            "do_poll*",
            "do_select",
            "pipe_read",
            "pipe_write",
            "anon_pipe_read",
            "anon_pipe_write",
            "unix_*",
            "sk_wait_data",
            "do_wait",
            "kernel_wait4",
            "do_sigtimedwait",
            "sigsuspend",
            "do_sched_yield",
            "io_wq_worker",
            "io_sq_thread",
        ],
    ),
];

/// Functions that put a task to sleep for others; the first function outside them is the reason.
pub(super) const HELPERS: &[&str] = &[
    "__schedule",
    "prepare_task_switch",
    "schedule",
    "schedule_*",
    "io_schedule*",
    "preempt_schedule*",
    "__cond_resched",
    "blk_io_schedule",
    "blk_wait_io",
    "bit_wait*",
    "__wait_on_bit",
    "__wait_on_bit_lock",
    "out_of_line_wait_on_bit*",
    "wait_on_bit*",
    "wait_for_common*",
    "__wait_for_common",
    "do_wait_for_common",
    "wait_for_completion*",
    "__wait_for_completion*",
    "wait_woken",
    "poll_schedule_timeout*",
    "msleep*",
    "usleep_range*",
    "io_cqring_schedule*",
    "__io_cqring_wait_schedule",
    "io_cqring_wait_schedule",
    "do_wait_intr*",
    "wait_var_event*",
    "prepare_to_wait*",
    "finish_wait",
];

/// Functions that wait or take a lock on behalf of who calls them: the caller is the one to name.
pub(super) const GO_BETWEENS: &[&str] = &[
    // locks
    "xfs_ilock*",
    "xfs_iunlock*",
    "inode_lock*",
    "ext4_inode_lock*",
    "btrfs_inode_lock*",
    "btrfs_tree_lock*",
    "btrfs_tree_read_lock*",
    "filemap_invalidate_lock*",
    "lock_two_*",
    "lock_rename*",
    "f2fs_down_*",
    "i_mmap_lock_*",
    // waits
    "iomap_dio_rw",
    "__blockdev_direct_IO",
    "blkdev_issue_flush",
    "submit_bio_wait",
    "folio_wait_*",
    "__filemap_fdatawait_range",
    "filemap_fdatawait_*",
    "futex_wait*",
    "__futex_wait*",
    "do_futex",
    "__blk_mq_alloc_requests",
];

/// Where a thread ends.
pub(super) const LAST_STEPS: &[&str] = &["do_task_dead", "do_exit", "make_task_dead"];
