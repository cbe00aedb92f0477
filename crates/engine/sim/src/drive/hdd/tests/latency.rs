//! One command at a time, and streams.

use super::super::{HDD_7K2, HDD_10K, HDD_15K};
use super::*;
use crate::drive::{Command, Done, Drive, Request};

const DISKS: [HddParameters; 3] = [HDD_7K2, HDD_10K, HDD_15K];

#[test]
fn a_random_read_takes_what_the_data_sheet_says() {
    for parameters in DISKS {
        let mean_ns = 1e9 / iops(parameters, &Load::random_read(1));
        near(parameters.name, mean_ns, parameters.random_read_ns(4_096), 0.05);
    }
}

#[test]
fn a_random_write_without_cache_takes_what_the_data_sheet_says() {
    for parameters in DISKS {
        let parameters = HddParameters { write_cache: false, ..parameters };
        let mean_ns = 1e9 / iops(parameters, &Load::random_write(1));
        near(parameters.name, mean_ns, parameters.random_write_ns(4_096), 0.05);
        assert!(parameters.random_write_ns(4_096) > parameters.random_read_ns(4_096));
    }
}

#[test]
fn a_small_emulated_disk_has_the_latency_of_the_whole_one() {
    for capacity_bytes in [256 << 20, 2 << 30] {
        let mut disk = Hdd::new(HDD_15K, capacity_bytes, 3);
        let window = BenchWindow::seconds(2.0, 60.0);
        let outcome = run(&mut disk, &Load::random_read(1), window, 4).expect("fits");
        // A little is found in the buffer, which is a larger part of a small disk.
        near("15k", 1e9 / outcome.iops.value, HDD_15K.random_read_ns(4_096), 0.06);
    }
}

fn stream(parameters: HddParameters, load: Load, from: u64) -> f64 {
    let load = Load { region_bytes: Some(from..from + (4 << 30)), ..load };
    outcome(parameters, &load, 4.0).bytes_per_s
}

#[test]
fn streams_run_at_the_rate_of_the_medium() {
    for parameters in DISKS {
        let inner = parameters.capacity_bytes - (4 << 30);
        let off = HddParameters { write_cache: false, ..parameters };
        for (from, rate) in
            [(0, parameters.outer_bytes_per_s), (inner, parameters.inner_bytes_per_s)]
        {
            let rate = rate as f64;
            let read = |bytes, depth| stream(parameters, Load::sequential_read(bytes, depth), from);
            near("read 128K, depth 1", read(128 << 10, 1), rate, 0.10);
            near("read 1M, depth 4", read(1 << 20, 4), rate, 0.10);
            let write =
                |disk, bytes, depth| stream(disk, Load::sequential_write(bytes, depth), from);
            near("write 128K, depth 1", write(parameters, 128 << 10, 1), rate, 0.10);
            near("write 128K, cache off, depth 4", write(off, 128 << 10, 4), rate, 0.10);
        }
    }
}

#[test]
fn a_lone_sequential_write_without_cache_misses_its_turn() {
    for parameters in DISKS {
        let off = HddParameters { write_cache: false, ..parameters };
        let found = iops(off, &Load::sequential_write(4_096, 1));
        near(parameters.name, found, 1e9 / parameters.turn_ns(), 0.02);
    }
}

fn one(disk: &mut Hdd, now_ns: u64, request: Request) -> u64 {
    let mut done = Vec::new();
    disk.submit(now_ns, request);
    while done.is_empty() {
        let next_ns = disk.next_event_ns().expect("something is in flight");
        disk.advance(next_ns, &mut done);
    }
    let [Done { id, at_ns }] = done[..] else { panic!("{done:?}") };
    assert_eq!(id, request.id);
    at_ns
}

#[test]
fn what_was_read_is_read_again_at_the_speed_of_the_interface() {
    for (command, bytes) in [(Command::Read, 65_536), (Command::Write, 65_536)] {
        let mut disk = Hdd::new(HDD_15K, HDD_15K.capacity_bytes, 1);
        let first = Request { id: 1, command, at_bytes: 30 << 30, bytes };
        let at_ns = one(&mut disk, 0, first);
        let again = Request { id: 2, command: Command::Read, ..first };
        let took_ns = one(&mut disk, at_ns, again) - at_ns;
        let wanted_ns = 200_000 + u64::from(bytes) * 10 / 3;
        assert!(took_ns.abs_diff(wanted_ns) < 2_000, "{command:?}: {took_ns} {wanted_ns}");
    }
}

#[test]
fn a_write_makes_the_read_cache_forget() {
    let parameters = HddParameters { write_cache: false, ..HDD_15K };
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 1);
    let read = Request { id: 1, command: Command::Read, at_bytes: 30 << 30, bytes: 4_096 };
    let at_ns = one(&mut disk, 0, read);
    let at_ns = one(&mut disk, at_ns, Request { id: 2, command: Command::Write, ..read });
    let took_ns = one(&mut disk, at_ns, Request { id: 3, ..read }) - at_ns;
    assert!(took_ns > 1_000_000, "{took_ns} ns is no turn");
}
