//! What accompanies the figures: profile, waits, latency by layer, device and processors.

use iostrata_run::host::{
    ApplicationLatency, BlockLatency, CpuShares, FoldedStack, FoldedStackTime, Iostat, KernelLayer,
    LayerSamples, LayerShare, LayerTime, OffCpu, OffCpuWait, PathSegment, Profile, QueueStep,
    QueueStepLatency, ReadsWrites, SegmentLatency, SegmentTimes, SymbolShare,
};

use super::At;
use crate::report::sample::events::{Noise, percentiles};

const ENTRY: [&str; 4] =
    ["user", "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_pwrite64"];

/// Frames below the system call, the layer they count for, and their weight.
const PATHS: [(&[&str], KernelLayer, f64); 9] = [
    (
        &["vfs_write", "ext4_file_write_iter", "ext4_dio_write_iter", "iomap_dio_rw"],
        KernelLayer::Filesystem,
        1.2,
    ),
    (
        &["vfs_write", "xfs_file_write_iter", "xfs_file_dio_write_aligned", "iomap_dio_rw"],
        KernelLayer::Filesystem,
        1.1,
    ),
    (
        &["vfs_write", "ext4_file_write_iter", "inode_lock", "rwsem_down_write_slowpath"],
        KernelLayer::Lock,
        0.4,
    ),
    (
        &["vfs_write", "iomap_dio_bio_iter", "submit_bio_noacct", "blk_mq_submit_bio"],
        KernelLayer::Block,
        1.4,
    ),
    (
        &["vfs_write", "submit_bio_noacct", "blk_mq_submit_bio", "dd_insert_requests"],
        KernelLayer::Scheduler,
        0.5,
    ),
    (
        &["vfs_write", "blk_mq_sched_dispatch_requests", "virtio_queue_rqs", "virtqueue_add_sgs"],
        KernelLayer::Driver,
        0.9,
    ),
    (&["jbd2_journal_commit_transaction", "jbd2_log_do_checkpoint"], KernelLayer::Journal, 0.3),
    (&["vfs_write", "generic_perform_write", "filemap_get_entry"], KernelLayer::PageCache, 0.6),
    (
        &["asm_common_interrupt", "handle_edge_irq", "blk_mq_complete_request"],
        KernelLayer::Interrupt,
        0.7,
    ),
];

/// Weights of the layers at a point: XFS with many writers spins.
fn weight(at: &At, layer: KernelLayer, base: f64) -> f64 {
    let writers = if at.rw == "randread" { 1.0 } else { f64::from(at.workers) };
    let held = matches!((at.filesystem, at.files), ("xfs" | "ext4", 1));
    match layer {
        KernelLayer::Lock if held => base * (1.0 + writers.ln() * 3.0),
        KernelLayer::Filesystem | KernelLayer::Journal if at.filesystem == "raw" => 0.0,
        KernelLayer::PageCache if at.method == "direct" => 0.0,
        _ => base,
    }
}

fn stacks(at: &At, noise: &mut Noise) -> Vec<FoldedStack> {
    let mut all = vec![FoldedStack {
        frames: ["cpu_startup_entry", "do_idle", "default_idle", "pv_native_safe_halt"]
            .map(str::to_owned)
            .to_vec(),
        layer: KernelLayer::Idle,
        samples: 900 / u64::from(at.workers.min(16)),
    }];
    for (frames, layer, base) in PATHS {
        let weight = weight(at, layer, base);
        for leaf in 0..34 {
            let samples = (weight * 60.0 * (1.0 + noise.next()) / f64::from(leaf + 1)) as u64;
            if samples == 0 {
                continue;
            }
            let tail = [
                format!("{}_step_{}", frames[frames.len() - 1], leaf % 12),
                format!("inner_{leaf}"),
            ];
            let frames: Vec<String> =
                ENTRY.iter().chain(frames).map(|one| (*one).to_owned()).chain(tail).collect();
            all.push(FoldedStack { frames, layer, samples });
        }
    }
    all.sort_by_key(|stack| std::cmp::Reverse(stack.samples));
    all.truncate(300);
    all
}

/// The profile of a point.
pub fn profile(at: &At, noise: &mut Noise) -> Profile {
    let stacks = stacks(at, noise);
    let samples: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let pct = |part: u64| 100.0 * part as f64 / samples as f64;
    let of = |layer: KernelLayer| -> u64 {
        stacks.iter().filter(|stack| stack.layer == layer).map(|stack| stack.samples).sum()
    };
    let share = |layer: KernelLayer| {
        let samples = of(layer);
        let taken_in = if layer == KernelLayer::Lock {
            vec![LayerSamples { layer: KernelLayer::Filesystem, samples }]
        } else {
            vec![]
        };
        (samples > 0).then(|| LayerShare { layer, samples, pct: pct(samples), taken_in })
    };
    let layers = KernelLayer::ALL.into_iter().filter_map(share).collect();
    let symbol = |stack: &FoldedStack| SymbolShare {
        symbol: stack.frames[stack.frames.len() - 1].clone()
            + "_"
            + &stack.frames[stack.frames.len() - 2],
        module: if stack.layer == KernelLayer::Driver { "virtio_blk" } else { "[kernel]" }.into(),
        layer: stack.layer,
        samples: stack.samples,
        pct: pct(stack.samples),
    };
    Profile {
        hz: 99,
        clock: "cpu-clock".into(),
        seconds: 4.5,
        cpus: 8,
        samples,
        lost: 0,
        layers,
        symbols: stacks.iter().take(25).map(symbol).collect(),
        off_cpu: Some(off_cpu(at)),
        stacks,
        stacks_rest_samples: 12,
        notes: vec!["the hypervisor offers no hardware counters: cpu-clock was used".into()],
    }
}

fn off_cpu(at: &At) -> OffCpu {
    let held = at.filesystem != "raw" && at.rw != "randread" && at.files == 1 && at.workers > 1;
    let lock_us = if held { 3.1e6 } else { 4.0e3 };
    let device_us = 1.4e6;
    let total_us = lock_us + device_us;
    let caller = format!("{}_file_write_iter", at.filesystem);
    let wait = |symbol: &str, caller: Option<&str>, layer, taken_in, count: u64, total_us: f64| {
        OffCpuWait {
            symbol: symbol.into(),
            caller: caller.map(str::to_owned),
            layer,
            taken_in,
            count,
            total_us,
            mean_us: total_us / count as f64,
            max_us: total_us / count as f64 * 7.3,
        }
    };
    let mut waits = vec![
        wait(
            "rwsem_down_write_slowpath",
            Some(&caller),
            KernelLayer::Lock,
            Some(KernelLayer::Filesystem),
            9_120,
            lock_us,
        ),
        wait(
            "blk_io_schedule",
            Some("__iomap_dio_rw"),
            KernelLayer::Device,
            None,
            21_400,
            device_us,
        ),
    ];
    for n in 0_u32..12 {
        waits.push(wait(
            &format!("small_wait_{n}"),
            None,
            KernelLayer::User,
            None,
            17,
            900.0 / f64::from(n + 1),
        ));
    }
    let time = |layer, count, us: f64| LayerTime {
        layer,
        count,
        total_us: us,
        pct: 100.0 * us / total_us,
    };
    let stack = |tail: [&str; 3], layer, count, total_us| FoldedStackTime {
        frames: ENTRY.iter().chain(&tail).map(|one| (*one).to_owned()).collect(),
        layer,
        count,
        total_us,
    };
    OffCpu {
        seconds: 0.5,
        threads: at.workers,
        count: 30_724,
        total_us,
        lost: 0,
        unfinished: u64::from(at.workers),
        layers: vec![
            time(KernelLayer::Device, 21_400, device_us),
            time(KernelLayer::Lock, 9_120, lock_us),
        ],
        waits,
        waits_rest_us: 0.0,
        stacks: vec![
            stack(
                ["vfs_write", "inode_lock", "rwsem_down_write_slowpath"],
                KernelLayer::Lock,
                9_120,
                lock_us,
            ),
            stack(
                ["vfs_write", "__iomap_dio_rw", "blk_io_schedule"],
                KernelLayer::Device,
                21_400,
                device_us,
            ),
        ],
        stacks_rest_us: 0.0,
    }
}

/// Latency by layer of a point whose mean latency is `mean_us`.
pub fn block_latency(at: &At, mean_us: f64) -> BlockLatency {
    let times =
        |share: f64| Some(SegmentTimes { count: 4_820, latency_us: percentiles(mean_us * share) });
    let (reads, writes) = (at.rw != "randwrite", at.rw != "randread");
    let held = at.filesystem != "raw" && writes && at.files == 1 && at.workers > 1;
    let above = if held { 0.7 } else { 0.06 };
    let of = |segment, share: f64| SegmentLatency {
        segment,
        reads: reads.then(|| times(share)).flatten(),
        writes: writes.then(|| times(share)).flatten(),
    };
    BlockLatency {
        seconds: 0.5,
        device: "loop0".into(),
        requests: 9_640,
        unmatched: 12,
        lost_events: 0,
        merged: 0,
        requeued: 0,
        calls: 9_602,
        held_back: 0,
        segments: vec![
            of(PathSegment::Filesystem, above),
            of(PathSegment::Queue, (1.0 - above) * 0.2),
            of(PathSegment::Device, (1.0 - above) * 0.75),
            of(PathSegment::Completion, (1.0 - above) * 0.05),
        ],
        queue_steps: vec![QueueStepLatency {
            step: QueueStep::Dispatch,
            reads: reads.then(|| times(0.05)).flatten(),
            writes: writes.then(|| times(0.05)).flatten(),
        }],
        flushes: (at.method == "fsync").then(|| times(0.5)).flatten(),
        call_latency: ReadsWrites::default(),
        application: Some(ApplicationLatency {
            read_us_mean: reads.then_some(mean_us * 1.01),
            write_us_mean: writes.then_some(mean_us * 1.01),
        }),
        unexplained: Some(ApplicationLatency {
            read_us_mean: reads.then_some(mean_us * 0.01),
            write_us_mean: writes.then_some(mean_us * 0.01),
        }),
        notes: vec![],
    }
}

pub fn cpu(at: &At) -> CpuShares {
    let busy = (f64::from(at.workers) * 9.0).min(72.0);
    CpuShares {
        user_pct: busy * 0.12,
        nice_pct: 0.0,
        system_pct: busy * 0.8,
        idle_pct: 100.0 - busy - 1.0,
        iowait_pct: 0.6,
        irq_pct: 0.1,
        softirq_pct: busy * 0.08,
        steal_pct: 0.3,
    }
}

pub fn iostat(at: &At, iops: f64) -> Iostat {
    let kib = if at.bs == "4k" { 4.0 } else { 16.0 };
    let (reads, writes) = match at.rw {
        "randread" => (iops, 0.0),
        "randwrite" => (0.0, iops),
        _ => (iops / 2.0, iops / 2.0),
    };
    Iostat {
        reads_per_s: reads,
        read_kib_per_s: reads * kib,
        read_await_ms: (reads > 0.0).then_some(0.21),
        read_size_kib: (reads > 0.0).then_some(kib),
        writes_per_s: writes,
        write_kib_per_s: writes * kib,
        write_await_ms: (writes > 0.0).then_some(0.34),
        write_size_kib: (writes > 0.0).then_some(kib),
        flushes_per_s: Some(if at.method == "fsync" { writes } else { 0.0 }),
        queue_size: f64::from(at.workers) * 0.6,
        util_pct: 97.3,
        ..Iostat::default()
    }
}
