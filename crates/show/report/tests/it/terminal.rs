//! The verdict in a terminal.

use iostrata_report::{html, markdown, terminal};

use crate::sample;

#[test]
fn a_verdict_fits_a_screen() {
    for sample in [sample::probe(), sample::clean_probe(), sample::io(), sample::partial()] {
        for width in [60, 80, 100, 200] {
            let text = terminal(&sample.view(), width, false);
            let most = text.lines().map(|line| line.chars().count()).max().unwrap();
            let rows = text.lines().count();
            let narrow_table = sample.manifest.arguments[0] == "io";
            assert!(narrow_table || most <= width, "{most} columns at {width}:\n{text}");
            assert!(width < 100 || rows <= 40, "{rows} rows at {width}:\n{text}");
        }
    }
}

#[test]
fn without_colour_it_is_ascii() {
    for sample in [sample::probe(), sample::clean_probe(), sample::io(), sample::partial()] {
        let text = terminal(&sample.view(), 100, false);
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn every_job_of_a_job_file_is_in_every_form() {
    let sample = sample::fio();
    let view = sample.view();
    let (text, page) = (terminal(&view, 100, false), html(&view));
    for shown in ["redo (wave 1)", "<b>pages</b>, 4 clones (wave 2)", "jobs.fio:7: openfiles=1"] {
        assert!(text.contains(shown), "{shown} is missing in:\n{text}");
    }
    let written = markdown(&view);
    assert!(written.contains("## redo (wave 1)") && written.contains("\\<b\\>pages"), "{written}");
    assert!(page.contains("&lt;b&gt;pages&lt;/b&gt;, 4 clones") && page.contains("2 workloads"));
    assert!(!page.contains("A partial run"));
}

#[test]
fn a_probe_reads_at_a_glance() {
    let text = terminal(&sample::probe().view(), 100, false);
    for line in [
        "iostrata probe /var/lib/mysql, ext4, sdb, Linux 6.12.8-sample",
        "  device       4 KiB random reads, 16 in flight                ##########   84.3 K reads/s +- 0.8 %",
        "  device       16 KiB writes for 20 s                          #########   15.8 K writes/s +- 1.6 %*",
        "  file system    74 % [73, 75]   Writes into a fallocated file that was never written run at 26 %..",
        "  innodb_flush_method = O_DIRECT          my.cnf [mysqld]; no risk",
        "Not measured: the raw device below the file system: reading /dev/sdb needs root",
        "39 rungs in 96.4 s, 3 GiB written, 95 % intervals; * cautions: not_steady, steal",
    ] {
        assert!(text.lines().any(|one| one == line), "no line {line:?} in\n{text}");
    }
    let text = terminal(&sample::clean_probe().view(), 100, false);
    assert!(text.contains("\nNo loss found.\nNothing need change.\n"), "{text}");
}

#[test]
fn one_workload_reads_like_what_users_of_fio_know() {
    let text = terminal(&sample::io().view(), 100, false);
    for line in [
        "                        rate    bandwidth     mean      p50      p95      p99    p99.9      max",
        "reads      18.3 K/s +- 0.9 %   71.7 MiB/s  41.2 us  38.3 us  57.7 us  90.6 us   202 us  1.28 ms",
        "memlock_limited: registered buffers were refused (RLIMIT_MEMLOCK or kernel)",
    ] {
        assert!(text.lines().any(|one| one == line), "no line {line:?} in\n{text}");
    }
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let again = "+- is for this window; measured again within the hour: 16.5 K/s to 20.2 K/s reads";
    assert!(flowing.contains(again) && flowing.contains("(by 7 earlier runs here)"), "{text}");
}
