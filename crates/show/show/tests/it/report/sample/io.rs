//! The sample's single workload.

use iostrata_plan::OpKind;
use iostrata_run::{Cpu, IoDocument, IoOpDocument, Series};
use iostrata_stats::{Verdict, Verdicts};

use super::events::percentiles;

fn op(iops: f64, bytes: f64, mean: f64) -> IoOpDocument {
    IoOpDocument {
        ios: (iops * 30.0) as u64,
        iops,
        iops_ci95: Some([iops * 0.991, iops * 1.009]),
        iops_n: 118,
        iops_repeat_ci95: Some([iops * 0.9, iops * 1.1]),
        iops_repeat_n: 7,
        bytes_per_s: iops * bytes,
        latency_us: percentiles(mean),
        latency_us_mean_ci95: Some([mean * 0.99, mean * 1.01]),
        response_us: None,
    }
}

pub fn io() -> IoDocument {
    IoDocument {
        ops: [
            (OpKind::Read, op(18_342.7, 4096.0, 41.2)),
            (OpKind::Write, op(18_331.2, 4096.0, 12.9)),
            (OpKind::Sync, op(18_330.9, 0.0, 512.4)),
        ]
        .into_iter()
        .collect(),
        cpu: Cpu { user_s: 1.42, sys_s: 11.3, ns_per_io: Some(6_940.0) },
        duration_s: 30.0,
        series: Series::default(),
        depth_mean: 15.7,
        start_lateness_us_p99: None,
        errors: vec![],
        notes: vec!["io_uring: registered buffers were refused; plain buffers were used".into()],
        run: Some("iostrata-runs/sample".into()),
        unknown: vec![],
        verdicts: [Verdict::MemlockLimited].into_iter().collect::<Verdicts>(),
    }
}
