//! Servers that die, and servers that stand still, under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_load::{Load, NoObserver, Surroundings, TransactionLoad, WindowFigures};
use iostrata_plan::{OpKind, RateProcess, TransactionPacing, TransactionSpec};
use iostrata_workload::oltp::{self, Member, OltpSpec, OltpTerminals};
use iostrata_workload::tpcc::Terminals;

use crate::{one_warehouse, private_server, terminal_options, violations};

/// How long a load may go on before what is waited for has come.
const WINDOW: Duration = Duration::from_secs(60);

/// The window of TPC-C by so many threads.
pub fn tpcc(threads: u32, name: &str) -> TransactionSpec {
    TransactionSpec {
        threads,
        warm_up: Some(Duration::ZERO),
        runtime: Some(WINDOW),
        ..TransactionSpec::new("tpcc", name)
    }
}

/// Runs a load for its window, or until it is interrupted.
pub fn window(load: &TransactionLoad<'_>, interrupted: &AtomicBool) -> WindowFigures {
    let surroundings = Surroundings { interrupted, program: None };
    load.run(&surroundings, &mut NoObserver).unwrap()
}

/// Runs terminals until so many orders are acknowledged, then what `kill` does meanwhile, then
/// until as many more are: two for each thread, one of which may have been on its way. The long
/// form goes on for the seconds of `long_s`.
pub fn killed(
    terminals: &Terminals<'_>,
    spec: &TransactionSpec,
    long_s: u64,
    kill: impl FnOnce(),
) -> WindowFigures {
    let load = TransactionLoad::new(terminals, spec, false);
    let is_over = AtomicBool::new(false);
    let acknowledged =
        || -> u32 { (1..=10).map(|district| terminals.orders().of(1, district).1).sum() };
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| window(&load, &is_over));
        let more = |than: u32| {
            while acknowledged() <= than + 2 * spec.threads && !running.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
            }
            acknowledged()
        };
        let before = more(0);
        assert!(before > 2 * spec.threads, "{before} orders before the kill");
        kill();
        let during = acknowledged();
        let after = more(during);
        assert!(after > during + 2 * spec.threads, "{during} at the kill, {after} in all");
        if is_long {
            std::thread::sleep(Duration::from_secs(long_s));
        }
        is_over.store(true, Ordering::Relaxed);
        running.join().unwrap()
    })
}

#[test]
fn a_killed_server_comes_back_with_every_acknowledged_order() {
    let Some(mut private) = private_server() else { return };
    let target = private.target("tpcc").unwrap();
    let dataset = one_warehouse(&target, 2);
    let terminals = Terminals::new(&target, &dataset, terminal_options(true));
    let figures = killed(&terminals, &tpcc(4, "a private server"), 6, || {
        private.kill().unwrap();
        private.start_again().unwrap();
    });
    let counts = figures.streams[0].transactions.clone().unwrap();
    assert!(figures.failure.is_none(), "it was away for less than the driver's patience");
    assert!(counts.errors.values().sum::<u64>() >= 1, "{:?}", counts.errors);
    assert_eq!(violations(&target, &terminals), Vec::<String>::new());
}

#[test]
fn a_server_that_stands_still_is_seen_in_response_times_and_not_in_service_times() {
    let Some(private) = private_server() else { return };
    let target = private.target("oltp").unwrap();
    let spec = OltpSpec { table_size: 1_000, ..OltpSpec::new(Member::PointSelect) };
    oltp::prepare(&target, &spec, 1, &AtomicBool::new(false), &|_| {}).unwrap();
    let terminals = OltpTerminals::new(&target, spec, true).unwrap();
    let spec = TransactionSpec {
        threads: 4,
        warm_up: Some(Duration::ZERO),
        runtime: Some(Duration::from_secs(4)),
        pacing: TransactionPacing::Open {
            rate_per_s: 500.0,
            process: RateProcess::Poisson,
            queue_max: 10_000,
            overload: Default::default(),
        },
        ..TransactionSpec::new("oltp_point_select", "a private server")
    };
    let load = TransactionLoad::new(&terminals, &spec, false);
    let process = private.process().unwrap();
    let server = rustix::process::Pid::from_raw(process.pid as i32).unwrap();
    let goes_on = AtomicBool::new(false);
    let figures = std::thread::scope(|scope| {
        let running = scope.spawn(|| window(&load, &goes_on));
        std::thread::sleep(Duration::from_millis(1_500));
        rustix::process::kill_process(server, rustix::process::Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        rustix::process::kill_process(server, rustix::process::Signal::CONT).unwrap();
        running.join().unwrap()
    });
    let stream = &figures.streams[0];
    let of = stream.ops[OpKind::Transaction].as_ref().unwrap();
    let response = of.response_us.unwrap();
    // About a quarter of the arrivals waited, four of them in the server.
    assert!(response.p99 > 700_000.0, "{response:?}");
    assert!(of.latency_us.p99 < response.p99 / 2.0, "{:?}, {response:?}", of.latency_us);
    assert!(of.latency_us.max > 900_000.0, "{:?}", of.latency_us);
    // Requested transactions arrive, whatever the server does.
    let arrived = stream.transactions.as_ref().unwrap().arrivals;
    assert!((1_500..2_500).contains(&arrived), "{arrived} of about 2,000");
}

#[test]
fn a_server_that_stays_away_ends_the_run_with_what_was_measured() {
    let Some(private) = private_server() else { return };
    let target = private.target("oltp").unwrap();
    let spec = OltpSpec { table_size: 1_000, ..OltpSpec::new(Member::PointSelect) };
    oltp::prepare(&target, &spec, 1, &AtomicBool::new(false), &|_| {}).unwrap();
    let terminals = OltpTerminals::new(&target, spec, true).unwrap();
    let spec = TransactionSpec {
        threads: 2,
        warm_up: Some(Duration::ZERO),
        runtime: Some(Duration::from_secs(60)),
        gone_max: Duration::from_secs(1),
        ..TransactionSpec::new("oltp_point_select", "a private server")
    };
    let load = TransactionLoad::new(&terminals, &spec, false);
    let is_over = AtomicBool::new(false);
    let figures = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let figures = window(&load, &AtomicBool::new(false));
            is_over.store(true, Ordering::Relaxed);
            figures
        });
        std::thread::sleep(Duration::from_secs(1));
        private.kill().unwrap();
        running.join().unwrap()
    });
    assert!(is_over.load(Ordering::Relaxed) && figures.failure.is_some());
    assert!(figures.duration_s < 30.0, "{}", figures.duration_s);
    assert!(figures.streams[0].ops[OpKind::Transaction].as_ref().unwrap().ios > 0);
}
