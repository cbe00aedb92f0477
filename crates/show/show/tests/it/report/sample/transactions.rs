//! The sample's staircase of transactions.

use iostrata_plan::OpKind;
use iostrata_run::{
    DatasetGrowth, DriverCost, SamplerCost, StallCause, TransactionDocument, TransactionDurability,
    TransactionLevel, TransactionSeries, TransactionStall, TransactionTarget,
};
use iostrata_stats::{Drift, Stability, Verdict};

use super::events::percentiles;

const MIX: [(OpKind, f64, f64); 5] = [
    (OpKind::NewOrder, 0.448, 9_210.0),
    (OpKind::Payment, 0.431, 4_020.0),
    (OpKind::OrderStatus, 0.041, 1_310.0),
    (OpKind::Delivery, 0.040, 14_700.0),
    (OpKind::StockLevel, 0.040, 2_900.0),
];

fn stability(worst: f64, down_s: f64) -> Stability {
    Stability {
        min_over_mean_1s: worst,
        min_over_mean_2s: Some(worst + 0.2),
        cov_1s: 0.083,
        longest_below_half_s: down_s,
    }
}

fn level(threads: u32, tps: f64, worst: f64) -> TransactionLevel {
    TransactionLevel {
        threads,
        rate_per_s: None,
        tps,
        tps_ci95: Some([tps * 0.985, tps * 1.015]),
        tps_n: 61,
        nopm: Some(tps * 0.448 * 60.0),
        latency_us: percentiles(f64::from(threads) / tps * 1e6),
        response_us: None,
        holds_target: None,
        stability: Some(stability(worst, 0.0)),
        errors: u64::from(threads / 8),
        us_per_txn: Some(187.0),
        verdicts: Default::default(),
    }
}

/// Four levels, of which the third is the best.
pub fn transactions() -> TransactionDocument {
    let tps = 1_432.6;
    let completed = |share: f64| (tps * 30.0 * share) as u64;
    let rate = |n: i32| if n == 17 { 590.0 } else { tps + f64::from(n % 5) * 3.0 };
    TransactionDocument {
        workload: "tpcc".into(),
        threads: 16,
        tps,
        tps_ci95: Some([1_411.0, 1_454.0]),
        tps_n: 61,
        nopm: Some(38_508.0),
        completed: MIX.iter().map(|(kind, share, _)| (*kind, completed(*share))).collect(),
        mix: MIX.iter().map(|(kind, share, _)| (*kind, *share)).collect(),
        latency_us: MIX.iter().map(|(kind, _, mean)| (*kind, percentiles(*mean))).collect(),
        response_us: Some(
            MIX.iter().map(|(kind, _, mean)| (*kind, percentiles(mean * 1.5))).collect(),
        ),
        series: TransactionSeries {
            t_s: (1..=30).map(f64::from).collect(),
            tps: (1..=30).map(rate).collect(),
        },
        stability: Some(stability(0.412, 0.8)),
        drift: Some(Drift {
            first_tps: 1_500.0,
            last_tps: 1_320.0,
            change_pct: -12.0,
            change_pct_ci95: Some([-14.1, -9.8]),
            change_pct_n: 31,
        }),
        stalls: vec![TransactionStall {
            t_s: 16.6,
            length_s: 0.8,
            min_tps: 590.0,
            cause: StallCause::RedoFull,
            evidence: "checkpoint age was at 99 % of its limit".into(),
        }],
        sampler: Some(SamplerCost {
            samples: 31,
            failed: 1,
            sample_us_mean: 412.0,
            sample_us_max: 2_300.0,
        }),
        insert: None,
        dataset: Some(DatasetGrowth {
            orders_before: Some(120_000),
            orders_after: Some(139_254),
            bytes_before: Some(400 << 20),
            bytes_after: Some(440 << 20),
        }),
        errors: [("1213".to_owned(), 41), ("1205".to_owned(), 2)].into_iter().collect(),
        retries: 118,
        arrivals: Some(43_020),
        dropped: 31,
        waiting: 4,
        start_lateness_us_p99: Some(83.0),
        driver: DriverCost {
            cpu_s: 8.04,
            us_per_txn: Some(187.0),
            round_trips_per_txn: Some(11.4),
            statements_per_txn: Some(23.9),
        },
        durability: TransactionDurability {
            flush_log_at_commit: Some(1),
            doublewrite: Some("DETECT_AND_RECOVER".into()),
            flush_method: Some("O_DIRECT".into()),
            binlog: Some(false),
            sync_binlog: None,
        },
        isolation: "repeatable read".into(),
        deviations: vec!["orders are kept for ever".into(), "no <b>terminal</b> emulator".into()],
        levels: vec![
            level(1, 310.0, 0.91),
            level(4, 940.0, 0.83),
            level(16, tps, 0.412),
            level(64, 1_390.0, 0.12),
        ],
        knee_threads: Some(16),
        latency_target: None,
        target: TransactionTarget {
            name: "mysql://bench@127.0.0.1:3306/tpcc".into(),
            flavour: "mysql".into(),
            version: "8.4.6".into(),
            settings: Default::default(),
        },
        duration_s: 30.0,
        warm_up_s: 7.5,
        notes: vec!["the server sits on the same machine".into()],
        run: Some("iostrata-runs/sample".into()),
        unknown: vec![],
        verdicts: [Verdict::CpuLimited].into_iter().collect(),
    }
}
