//! Which function of the kernel belongs to which layer.
//!
//! Purpose: plain tables, one per part of the kernel, and the look-up in them. A name that ends in
//! `*` stands for every function that begins so. Invariants: an exact name wins over a beginning,
//! the longest beginning wins, and a name stands in the tables once. Helpers that every layer calls
//! (memory, copying, timers, trees) are left out on purpose: their time belongs to their caller.
//! Names are those of Linux 5.10 to 6.18, and the ones that profiles of 2012 show.

mod files;

use std::collections::HashMap;
use std::sync::LazyLock;

use iostrata_run::host::KernelLayer::{
    self, Block, Device, Filesystem, Idle, Interrupt, Journal, Limit, Lock, PageCache, TaskSwitch,
    User,
};

/// Layers and the names that belong to each.
type LayerTable = &'static [(KernelLayer, &'static [&'static str])];

/// Exact names and beginnings.
struct Names<T: 'static> {
    exact: HashMap<&'static str, T>,
    beginnings: HashMap<&'static str, T>,
    longest: usize,
}

impl<T: Copy> Names<T> {
    fn new(entries: impl Iterator<Item = (&'static str, T)>) -> Self {
        let (mut exact, mut beginnings) = (HashMap::new(), HashMap::new());
        for (name, value) in entries {
            match name.strip_suffix('*') {
                Some(beginning) => beginnings.insert(beginning, value),
                None => exact.insert(name, value),
            };
        }
        let longest = beginnings.keys().map(|name| name.len()).max().unwrap_or(0);
        Self { exact, beginnings, longest }
    }

    fn of(&self, symbol: &str) -> Option<T> {
        if let Some(value) = self.exact.get(symbol) {
            return Some(*value);
        }
        (1..=symbol.len().min(self.longest))
            .rev()
            .filter_map(|length| self.beginnings.get(symbol.get(..length)?))
            .next()
            .copied()
    }
}

fn flat(table: LayerTable) -> impl Iterator<Item = (&'static str, KernelLayer)> {
    table.iter().flat_map(|(layer, names)| names.iter().map(|name| (*name, *layer)))
}

static LAYERS: LazyLock<Names<Option<KernelLayer>>> = LazyLock::new(|| {
    let known = [files::FILE_TABLE, files::BLOCK_TABLE, KERNEL_TABLE].into_iter().flat_map(flat);
    let callers = OF_THE_CALLER.iter().map(|name| (*name, None));
    Names::new(known.map(|(name, layer)| (name, Some(layer))).chain(callers))
});

static MODULES: LazyLock<Names<KernelLayer>> = LazyLock::new(|| Names::new(flat(files::MODULES)));

static WAITS: LazyLock<Names<KernelLayer>> = LazyLock::new(|| Names::new(flat(WAIT_TABLE)));

static HELPERS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(HELPER_NAMES.iter().map(|name| (*name, ()))));

static GO_BETWEENS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(GO_BETWEEN_NAMES.iter().map(|name| (*name, ()))));

static LAST_STEPS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(LAST_STEP_NAMES.iter().map(|name| (*name, ()))));

static ROOTS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(ROOT_NAMES.iter().map(|name| (*name, ()))));

/// A name without what the compiler appends: `dd_insert.isra.0` is `dd_insert`.
fn plain(symbol: &str) -> &str {
    symbol.split_once('.').map_or(symbol, |(name, _)| name)
}

/// The layer of a function; absent for a helper of its caller. `module` decides for the functions
/// of a module that have no name here.
pub(crate) fn layer(symbol: &str, module: &str) -> Option<KernelLayer> {
    match LAYERS.of(plain(symbol)) {
        Some(answer) => answer,
        None => MODULES.of(module),
    }
}

/// What a function waits for, where that differs from the layer it belongs to.
pub(crate) fn wait_layer(symbol: &str) -> Option<KernelLayer> {
    WAITS.of(plain(symbol))
}

/// Whether a function only helps others to wait.
pub(crate) fn is_wait_helper(symbol: &str) -> bool {
    HELPERS.of(plain(symbol)).is_some()
}

/// Whether a function waits or takes a lock for its caller.
pub(crate) fn is_go_between(symbol: &str) -> bool {
    GO_BETWEENS.of(plain(symbol)).is_some()
}

/// Whether a thread that is in this function never runs again.
pub(crate) fn is_last_step(symbol: &str) -> bool {
    LAST_STEPS.of(plain(symbol)).is_some()
}

/// Whether a stack that begins here belongs to no program.
pub(crate) fn is_kernel_root(symbol: &str) -> bool {
    ROOTS.of(plain(symbol)).is_some()
}

// What a sleeping thread waits for.

/// Functions that wait for something other than their own layer, or that only ever wait.
const WAIT_TABLE: LayerTable = &[
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
const HELPER_NAMES: &[&str] = &[
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

/// Functions that wait or take a lock on behalf of their callers: the caller is the one to name.
const GO_BETWEEN_NAMES: &[&str] = &[
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
const LAST_STEP_NAMES: &[&str] = &["do_task_dead", "do_exit", "make_task_dead"];

// What is no step of an I/O's way: interrupts, locks, task switching, idling.

const KERNEL_TABLE: LayerTable = &[
    (
        Interrupt,
        &[
            "asm_sysvec_*",
            "sysvec_*",
            "__sysvec_*",
            "instr_sysvec_*",
            "run_sysvec_*",
            "asm_common_interrupt",
            "common_interrupt*",
            "__common_interrupt",
            "asm_call_irq_on_stack",
            "asm_call_sysvec_on_stack",
            "asm_exc_nmi",
            "exc_nmi",
            "do_IRQ",
            "do_interrupt_handler",
            "ret_from_intr",
            "call_on_irq_stack",
            "el0_interrupt",
            "el1_interrupt",
            "el0t_64_irq*",
            "el1h_64_irq*",
            "gic_*",
            "handle_irq*",
            "__handle_irq*",
            "handle_edge_irq",
            "handle_fasteoi_*",
            "handle_level_irq",
            "handle_percpu_*",
            "handle_softirqs",
            "generic_handle_*",
            "irq_enter*",
            "irq_exit*",
            "__irq_exit_rcu",
            "irqentry_*",
            "__do_softirq",
            "do_softirq*",
            "__do_softirq_own_stack",
            "call_softirq",
            "invoke_softirq",
            "raise_softirq*",
            "__raise_softirq*",
            "run_ksoftirqd",
            "tasklet_*",
            "__tasklet_*",
            "apic_*",
            "x2apic_*",
            "native_apic_*",
            "ack_*",
            "lapic_*",
            "__x2apic_*",
            "default_send_IPI*",
            "smp_apic_timer_interrupt",
            "apic_timer_interrupt",
            "local_apic_timer_interrupt",
            "smp_call_function*",
            "generic_smp_call_function*",
            "flush_smp_call_function*",
            "__flush_smp_call_function*",
            "native_write_msr*",
            "hrtimer_interrupt",
            "__hrtimer_run_queues",
            "hrtimer_run_*",
            "run_timer_softirq",
            "__run_timers",
            "run_timer_base",
            "__run_timer_base",
            "call_timer_fn",
            "expire_timers",
            "tick_sched_*",
            "tick_nohz_handler",
            "tick_handle_*",
            "tick_program_event",
            "clockevents_program_event",
            "update_process_times",
            "update_wall_time",
            "timekeeping_*",
            "rcu_core*",
            "rcu_do_batch",
            "rcu_sched_clock_irq",
            "msi_*",
        ],
    ),
    (
        Lock,
        &[
            "native_queued_spin_lock_slowpath",
            "__pv_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "queued_read_lock_slowpath",
            "queued_write_lock_slowpath",
            "__ticket_spin_*",
            "_raw_spin_*",
            "__raw_spin_*",
            "_raw_read_*",
            "_raw_write_*",
            "__raw_callee_save___pv_queued_spin_unlock*",
            "__pv_queued_spin_unlock*",
            "_spin_*",
            "do_raw_spin_*",
            "raw_spin_rq_lock*",
            "kvm_wait",
            "__pv_wait*",
            "rwsem_*",
            "__rwsem_*",
            "call_rwsem_*",
            "down",
            "down_*",
            "__down",
            "__down_*",
            "up",
            "up_*",
            "__up_*",
            "downgrade_write",
            "mutex_*",
            "__mutex_*",
            "ww_mutex_*",
            "rt_mutex_*",
            "rtlock_*",
            "osq_*",
            "percpu_down_*",
            "__percpu_down_*",
            "percpu_up_*",
            "percpu_rwsem_*",
        ],
    ),
    (
        TaskSwitch,
        &[
            "__schedule",
            "schedule",
            "schedule_*",
            "io_schedule*",
            "preempt_schedule*",
            "__cond_resched",
            "finish_task_switch*",
            "prepare_task_switch",
            "context_switch",
            "__switch_to*",
            "switch_mm*",
            "switch_fpu_*",
            "restore_fpregs_*",
            "save_fpregs_*",
            "native_write_cr0",
            "native_load_tls",
            "native_smp_send_reschedule",
            "try_to_wake_up",
            "ttwu_*",
            "sched_ttwu_pending",
            "wake_up_*",
            "__wake_up*",
            "default_wake_function",
            "autoremove_wake_function",
            "wake_page_function",
            "woken_wake_function",
            "select_task_rq*",
            "select_idle_*",
            "enqueue_*",
            "__enqueue_*",
            "dequeue_*",
            "__dequeue_*",
            "pick_next_*",
            "__pick_*",
            "pick_task_*",
            "pick_eevdf",
            "put_prev_*",
            "set_next_*",
            "update_curr*",
            "update_load_avg*",
            "__update_load_avg*",
            "update_rq_clock*",
            "update_cfs_*",
            "update_sd_lb_stats*",
            "update_sg_lb_stats",
            "update_min_vruntime",
            "load_balance",
            "sched_balance_*",
            "find_busiest_group",
            "find_idlest_*",
            "newidle_balance",
            "idle_balance",
            "rebalance_domains",
            "run_rebalance_domains",
            "nohz_*",
            "_nohz_idle_balance*",
            "resched_curr*",
            "__resched_curr*",
            "check_preempt_*",
            "wakeup_preempt*",
            "place_entity",
            "reweight_*",
            "task_tick_*",
            "task_fork_*",
            "psi_*",
            "sched_*",
            "__sched_*",
            "scheduler_tick",
            "wq_worker_*",
            "cpuacct_*",
            "dl_server_*",
            "migration_cpu_stop",
            "yield_task_*",
        ],
    ),
    (
        Idle,
        &[
            "do_idle",
            "cpu_startup_entry",
            "cpu_idle*",
            "cpuidle_*",
            "call_cpuidle",
            "default_idle*",
            "arch_cpu_idle*",
            "cpu_do_idle",
            "intel_idle*",
            "acpi_idle_*",
            "acpi_safe_halt",
            "acpi_processor_ffh_*",
            "mwait_idle*",
            "native_safe_halt",
            "pv_native_safe_halt",
            "amd_e400_idle",
            "poll_idle",
            "haltpoll_*",
            "psci_*",
            "menu_*",
            "teo_*",
            "ladder_*",
            "tick_nohz_idle_*",
            "tick_nohz_restart_sched_tick",
            "tick_nohz_next_event",
            "tick_nohz_get_*",
            "tick_nohz_stop_tick",
            "sched_idle_set_state",
            "ct_idle_*",
            "rcu_idle_*",
            "quiet_vmstat",
            "start_secondary",
            "rest_init",
        ],
    ),
];

/// Names that a table would catch and that yet belong to their caller. Releasing a spin lock turns
/// interrupts on again, so a clock that is an interrupt itself lands here for all the time they
/// were off: that time is the caller's work, not waiting for the lock.
const OF_THE_CALLER: &[&str] = &[
    "_raw_spin_unlock*",
    "_raw_read_unlock*",
    "_raw_write_unlock*",
    "sched_clock*",
    "schedule_work*",
    "schedule_delayed_work*",
];

/// Outermost functions of stacks that begin in the kernel.
const ROOT_NAMES: &[&str] = &[
    "ret_from_fork*",
    "kthread",
    "kernel_thread_helper",
    "cpu_startup_entry",
    "do_idle",
    "secondary_startup_64*",
    "common_startup_64",
    "start_secondary",
    "start_kernel",
    "rest_init",
    "x86_64_start_*",
    "__secondary_switched",
    "__primary_switched",
    "cpu_idle",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_the_tables_once() {
        let mut seen = HashMap::new();
        let tables =
            [files::FILE_TABLE, files::BLOCK_TABLE, KERNEL_TABLE].into_iter().flat_map(flat);
        let names = tables.map(|(name, _)| name).chain(OF_THE_CALLER.iter().copied());
        for name in names {
            assert!(!name.is_empty() && name != "*", "an empty name matches everything");
            assert!(seen.insert(name, ()).is_none(), "{name} stands there twice");
        }
        for helper in HELPER_NAMES {
            assert!(wait_layer(helper.trim_end_matches('*')).is_none(), "{helper} is no reason");
        }
    }

    #[test]
    fn the_exact_name_then_the_longest_beginning_decides() {
        use KernelLayer::{Block, Driver, Filesystem, Journal, Scheduler};
        assert_eq!(layer("ext4_file_write_iter", "[kernel]"), Some(Filesystem));
        assert_eq!(layer("ext4_journal_start_sb", "ext4"), Some(Journal));
        assert_eq!(layer("dd_insert_requests.isra.0", "[kernel]"), Some(Scheduler));
        assert_eq!(layer("blk_mq_get_tag", "[kernel]"), Some(Block));
        assert_eq!(layer("kfio_destroy_disk", "iomemory_vsl"), Some(Driver));
        assert_eq!(layer("some_helper", "xfs"), Some(Filesystem));
        assert_eq!(layer("some_helper", "[kernel]"), None);
        assert_eq!(layer("_raw_spin_unlock_irqrestore", "[kernel]"), None);
        assert_eq!(layer("\u{e9}\u{e9}", "[kernel]"), None);
    }
}
