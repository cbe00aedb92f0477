//! From counted addresses to a profile by layer, symbol and stack: which layer a stack's time
//! belongs to, and why a thread sleeps.
//!
//! Invariant: every sample lands in exactly one layer and in one stack, so both add up to all
//! samples. Pure: the symbols are given.

use iostrata_run::host::{
    FoldedStack, FoldedStackTime, KERNEL_MODULE, KernelLayer, LayerSamples, LayerShare, LayerTime,
    OffCpu, OffCpuWait, Profile, SymbolShare,
};

use crate::profile::catalogue;
use crate::profile::collector::Samples;
use crate::profile::kallsyms::{Function, Kallsyms};
use crate::profile::switches::{SwitchTally, Switches, ThreadWait};

/// The one frame that stands for a program.
const PROGRAM: &str = "user";
/// An address that no function holds.
const UNKNOWN: &str = "(unknown)";
/// Idle time that was computed, not sampled.
const COMPUTED_IDLE: &str = "(idle)";

/// Fills in layers, symbols, stacks and the number of samples.
pub(crate) fn fold(samples: &Samples, idle_computed: u64, symbols: &Kallsyms) -> Profile {
    let mut profile = Profile {
        samples: samples.total + idle_computed,
        lost: samples.lost,
        ..Profile::default()
    };
    for (chain, &count) in &samples.kernel {
        let stack = named(chain, symbols);
        let place = place(&stack);
        let taken_in = place.taken_in.map(|layer| LayerSamples { layer, samples: count });
        let mut row = FoldRow { layer: place.layer, taken_in, samples: count };
        if stack.is_empty() {
            row.add(&mut profile, UNKNOWN, KERNEL_MODULE, vec![UNKNOWN.to_owned()]);
        } else {
            row.add(&mut profile, stack[0].name, stack[0].module, frames(&stack));
        }
    }
    let own = samples.own.iter().map(|program| (KernelLayer::User, program));
    let others = samples.others.iter().map(|program| (KernelLayer::OtherPrograms, program));
    for (layer, (program, &samples)) in own.chain(others) {
        let mut row = FoldRow { layer, taken_in: None, samples };
        row.add(&mut profile, PROGRAM, program, vec![PROGRAM.to_owned()]);
    }
    if idle_computed > 0 {
        let mut row = FoldRow { layer: KernelLayer::Idle, taken_in: None, samples: idle_computed };
        row.add(&mut profile, COMPUTED_IDLE, KERNEL_MODULE, vec![COMPUTED_IDLE.to_owned()]);
    }
    profile.ranked()
}

struct FoldRow {
    layer: KernelLayer,
    taken_in: Option<LayerSamples>,
    samples: u64,
}

impl FoldRow {
    fn add(&mut self, profile: &mut Profile, symbol: &str, module: &str, frames: Vec<String>) {
        let Self { layer, samples, .. } = *self;
        let taken_in = self.taken_in.take().into_iter().collect();
        profile.layers.push(LayerShare { layer, samples, pct: 0.0, taken_in });
        let (symbol, module) = (symbol.to_owned(), module.to_owned());
        profile.symbols.push(SymbolShare { symbol, module, layer, samples, pct: 0.0 });
        profile.stacks.push(FoldedStack { frames, layer, samples });
    }
}

/// The functions of a chain, innermost first. All but the first address are where a call returns
/// to, which may be past the end of the caller: the byte before belongs to the call.
fn named<'a>(chain: &[u64], symbols: &'a Kallsyms) -> Vec<Function<'a>> {
    let unknown = Function { name: UNKNOWN, module: KERNEL_MODULE };
    chain
        .iter()
        .enumerate()
        .map(|(depth, &address)| if depth == 0 { address } else { address.saturating_sub(1) })
        .map(|address| symbols.function(address).unwrap_or(unknown))
        .collect()
}

/// A stack as views show it: from the outermost, programs as one frame.
fn frames(stack: &[Function<'_>]) -> Vec<String> {
    let is_program = stack.last().is_some_and(|root| !catalogue::is_kernel_root(root.name));
    let kernel = stack.iter().rev().map(|function| match function.module {
        KERNEL_MODULE => function.name.to_owned(),
        module => format!("{} [{module}]", function.name),
    });
    is_program.then(|| PROGRAM.to_owned()).into_iter().chain(kernel).collect()
}

/// What the switches of a window came to.
pub(crate) fn fold_waits(switches: &Switches, seconds: f64, symbols: &Kallsyms) -> OffCpu {
    let mut off_cpu = OffCpu {
        seconds,
        threads: switches.threads.len() as u32,
        lost: switches.lost,
        ..OffCpu::default()
    };
    let stacks = switches.stacks();
    for (wait, tally) in &switches.waits {
        add_wait(&mut off_cpu, *wait, tally, &named(stacks[wait.stack as usize], symbols));
    }
    off_cpu.ranked()
}

fn add_wait(off_cpu: &mut OffCpu, wait: ThreadWait, tally: &SwitchTally, stack: &[Function<'_>]) {
    let Some(reason) = reason(stack, wait.preempted) else { return };
    let us = |ns: u64| ns as f64 / 1e3;
    let (layer, count, total_us) = (reason.layer, tally.count, us(tally.total_ns));
    off_cpu.count += count;
    off_cpu.total_us += total_us;
    off_cpu.unfinished += tally.unfinished;
    off_cpu.layers.push(LayerTime { layer, count, total_us, pct: 0.0 });
    off_cpu.waits.push(OffCpuWait {
        symbol: reason.symbol,
        caller: reason.caller,
        layer,
        taken_in: reason.taken_in,
        count,
        total_us,
        mean_us: 0.0,
        max_us: us(tally.max_ns),
    });
    off_cpu.stacks.push(FoldedStackTime { frames: frames(stack), layer, count, total_us });
}

// Which layer a stack's time belongs to, and why a thread sleeps. Pure.
//
// The innermost function that belongs to a layer decides; functions that every layer calls belong
// to none. Time in a lock is the lock's; its caller is kept as well. Two file systems on top of
// each other (a loop device over a file) are not distinguished.
//
// Of a sleeping thread, from the innermost function outwards, what merely puts to sleep is passed
// over; the first other function is the reason. Its caller is the first function further out that
// is neither part of a lock nor one that only passes the wait on.

/// Where a stack belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LayerPlace {
    pub(crate) layer: KernelLayer,
    /// For a lock: the layer that takes it.
    taken_in: Option<KernelLayer>,
}

/// Where a stack belongs, given from the innermost function to the outermost.
fn place(stack: &[Function<'_>]) -> LayerPlace {
    let mut layers =
        stack.iter().filter_map(|function| catalogue::layer(function.name, function.module));
    let layer = layers.next().unwrap_or(KernelLayer::Other);
    let taken_in = (layer == KernelLayer::Lock)
        .then(|| layers.find(|&outer| outer != KernelLayer::Lock).unwrap_or(KernelLayer::Other));
    LayerPlace { layer, taken_in }
}

/// The reason of a thread that could have gone on and had no processor.
const PREEMPTED: &str = "(preempted)";
/// The reason of a stack that shows none.
const UNKNOWN_FUNCTION: &str = "(unknown)";

/// Why a thread sleeps, and the caller of the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    pub(crate) symbol: String,
    caller: Option<String>,
    pub(crate) layer: KernelLayer,
    /// For a lock: the layer that takes it.
    taken_in: Option<KernelLayer>,
}

/// The reason that a stack shows, given from the innermost function outwards; absent for a thread
/// that has ended.
fn reason(stack: &[Function<'_>], preempted: bool) -> Option<Reason> {
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
        return Some(plain(UNKNOWN_FUNCTION, KernelLayer::Other));
    };
    let layer = catalogue::wait_layer(waits.name).unwrap_or_else(|| place(rest).layer);
    let outer = asking(&rest[1..], layer);
    Some(Reason {
        caller: outer.first().map(|function| function.name.to_owned()),
        taken_in: (layer == KernelLayer::Lock).then(|| place(outer).layer),
        ..plain(waits.name, layer)
    })
}

/// The part of a stack that begins with the caller of a wait of this layer.
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
    use super::*;
    use proptest::prelude::*;

    const SYMBOLS: &str = "\
1000 t vfs_write
2000 t __iomap_dio_rw
3000 t blk_mq_submit_bio
4000 t virtio_queue_rq [virtio_blk]
5000 t _raw_spin_lock
6000 t memcpy
7000 t do_idle
8000 t cpu_startup_entry
9000 t ret_from_fork_asm
a000 T past_the_end
";

    fn samples(kernel: &[(&[u64], u64)], own: &[(&str, u64)]) -> Samples {
        let kernel_total: u64 = kernel.iter().map(|(_, count)| count).sum();
        let program_total: u64 = own.iter().map(|(_, count)| count).sum();
        Samples {
            kernel: kernel.iter().map(|(chain, count)| ((*chain).into(), *count)).collect(),
            own: own.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            total: kernel_total + program_total,
            ..Samples::default()
        }
    }

    fn layer(profile: &Profile, layer: KernelLayer) -> u64 {
        profile.layers.iter().find(|row| row.layer == layer).map_or(0, |row| row.samples)
    }

    #[test]
    fn stacks_are_folded_by_function_and_layer() {
        // The second chain is the first one at other places of the same functions; the return
        // address 0x2000 is the end of vfs_write, not the beginning of the next function.
        let kernel: [(&[u64], u64); 4] = [
            (&[0x4010, 0x3010, 0x2010, 0x1010], 5),
            (&[0x4020, 0x3020, 0x2020, 0x2000], 3),
            (&[0x7010, 0x8010], 90),
            (&[0x5000, 0x3010, 0x9010], 2),
        ];
        let profile = fold(&samples(&kernel, &[("mysqld", 10)]), 0, &Kallsyms::parse(SYMBOLS));
        assert_eq!(profile.samples, 110);
        assert_eq!(layer(&profile, KernelLayer::Driver), 8);
        assert_eq!(layer(&profile, KernelLayer::Idle), 90);
        assert_eq!(layer(&profile, KernelLayer::User), 10);
        let lock = profile.layers.iter().find(|row| row.layer == KernelLayer::Lock).unwrap();
        let block = LayerSamples { layer: KernelLayer::Block, samples: 2 };
        assert_eq!((lock.samples, lock.taken_in.as_slice()), (2, [block].as_slice()));
        let stack = profile.stacks.iter().find(|stack| stack.samples == 8).unwrap();
        let frames = ["user", "vfs_write", "__iomap_dio_rw", "blk_mq_submit_bio"];
        assert_eq!(stack.frames[..4], frames);
        assert_eq!(stack.frames[4], "virtio_queue_rq [virtio_blk]");
        assert_eq!(stack.innermost(), Some(("virtio_queue_rq", "virtio_blk")));
        assert_eq!(profile.stacks[0].frames, ["cpu_startup_entry", "do_idle"]);
        let top: Vec<(&str, &str)> =
            profile.symbols.iter().map(|row| (row.symbol.as_str(), row.module.as_str())).collect();
        let expected = [
            ("do_idle", "[kernel]"),
            ("user", "mysqld"),
            ("virtio_queue_rq", "virtio_blk"),
            ("_raw_spin_lock", "[kernel]"),
        ];
        assert_eq!(top, expected);
    }

    #[test]
    fn other_programs_are_told_from_the_one_that_measures() {
        let mut samples = samples(&[], &[("iostrata", 3)]);
        samples.others.insert("iostrata".to_owned(), 2);
        samples.others.insert("mysqld".to_owned(), 4);
        samples.total += 6;
        let profile = fold(&samples, 0, &Kallsyms::default());
        let of = |name| layer(&profile, name);
        assert_eq!((of(KernelLayer::User), of(KernelLayer::OtherPrograms)), (3, 6));
    }

    #[test]
    fn computed_idle_counts_as_samples() {
        let profile = fold(&samples(&[(&[0x1010], 1)], &[]), 99, &Kallsyms::parse(SYMBOLS));
        assert_eq!((profile.samples, layer(&profile, KernelLayer::Idle)), (100, 99));
        assert_eq!(profile.symbols[0].pct, 99.0);
    }

    #[test]
    fn without_symbols_everything_is_other() {
        let profile = fold(&samples(&[(&[0x1010], 3)], &[("a", 1)]), 0, &Kallsyms::default());
        assert_eq!(layer(&profile, KernelLayer::Other), 3);
        assert_eq!(layer(&profile, KernelLayer::User), 1);
    }

    #[test]
    fn waits_of_threads_that_ended_are_left_out() {
        use crate::profile::record::Stamp;
        use crate::profile::switches::Step;
        let symbols = Kallsyms::parse(
            "1000 t __schedule\n2000 t do_task_dead\n3000 t __iomap_dio_rw\n4000 t x",
        );
        let mut switches = Switches::default();
        let stamp = |tid, at_ns| Stamp { pid: 1, tid, at_ns };
        switches.leaving(stamp(1, 1_000), [0x1001, 0x3001].into_iter());
        switches.step(9_000, Step::Enter { tid: 1 });
        switches.leaving(stamp(2, 1_000), [0x1001, 0x2001].into_iter());
        switches.finish(1_000_000);
        let off_cpu = fold_waits(&switches, 1.0, &symbols);
        assert_eq!((off_cpu.count, off_cpu.total_us, off_cpu.unfinished), (1, 8.0, 0));
        let wait = &off_cpu.waits[0];
        assert_eq!((wait.symbol.as_str(), wait.layer), ("__iomap_dio_rw", KernelLayer::Device));
        assert_eq!((wait.mean_us, wait.max_us), (8.0, 8.0));
        assert_eq!(off_cpu.layers[0].pct, 100.0);
    }

    proptest! {
        #[test]
        fn layers_and_stacks_add_up_to_all_samples(
            chains in proptest::collection::vec(
                (proptest::collection::vec(0_u64..0xb000, 0..6), 1_u64..1_000), 0..600),
            programs in proptest::collection::vec(1_u64..1_000, 0..4),
            idle in 0_u64..1_000,
        ) {
            let chains: std::collections::BTreeMap<Vec<u64>, u64> = chains.into_iter().collect();
            let kernel: Vec<(&[u64], u64)> =
                chains.iter().map(|(chain, count)| (chain.as_slice(), *count)).collect();
            let names = ["a", "b", "c", "d"];
            let programs: Vec<(&str, u64)> = names.into_iter().zip(programs).collect();
            let samples = samples(&kernel, &programs);
            let profile = fold(&samples, idle, &Kallsyms::parse(SYMBOLS));
            prop_assert_eq!(profile.samples, samples.total + idle);
            let layers: u64 = profile.layers.iter().map(|row| row.samples).sum();
            prop_assert_eq!(layers, profile.samples);
            let stacks: u64 = profile.stacks.iter().map(|row| row.samples).sum();
            prop_assert_eq!(stacks + profile.stacks_rest_samples, profile.samples);
            let twice = Profile::merge([&profile, &profile]).unwrap();
            let layers: u64 = twice.layers.iter().map(|row| row.samples).sum();
            prop_assert_eq!(layers, 2 * profile.samples);
        }
    }
}

#[cfg(test)]
mod layers_tests {
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
        assert_eq!((unknown.symbol.as_str(), unknown.layer), (UNKNOWN_FUNCTION, Other));
        assert_eq!(reason(&stack("__schedule do_task_dead do_exit"), false), None);
    }
}
