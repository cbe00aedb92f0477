//! Command lines of sysbench and go-tpc, as they stand in their manuals.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use iostrata_server::private::ServerProgram;
use serde_json::Value;

use crate::harness::{Bench, completed, document, number, stderr, stdout};
use crate::server::{Private, programs};

const MEMBERS: [&str; 10] = [
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
];

fn done(bench: &Bench, line: &str) -> String {
    let output = bench.line(line);
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    stdout(&output)
}

/// The socket in an address.
fn socket_of(target: &str) -> String {
    let (_, parameters) = target.split_once("socket=").unwrap();
    parameters.split('&').next().unwrap().replace("%2F", "/")
}

#[test]
fn lines_of_sysbench_run_as_they_are() {
    for program in programs() {
        let program = ServerProgram::find(&program).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("general.log");
        let options = format!("--general-log-file={}", log.display());
        let private = Private::of(program, dir, &["--general-log=1", &options], &[]);
        every_member_runs(&private, &log);
        drop(private.end());
    }
}

#[test]
fn an_option_file_a_script_and_old_names_are_taken() {
    let bench = Bench::new();
    let config = "target=engine:e\ntables=1\n# rows\ntable-size=90\nnum-threads=1\nmax-time=1\n";
    std::fs::write(bench.path("config"), config).unwrap();
    let prepared = done(&bench, "--config-file=config oltp_common prepare");
    assert!(prepared.starts_with("1 table: 90 rows"), "{prepared}");
    let script = "/usr/share/sysbench/oltp_point_select.lua";
    for line in [
        format!("{script} --config-file=config --events=40 --json run"),
        format!("--test={script} --config-file=config --max-requests=40 --json run"),
        "--test=oltp --oltp-test-mode=simple --config-file=config --events=40 --json run"
            .to_owned(),
    ] {
        let run = document(&bench.line(&line), "tpcc");
        assert_eq!(completed(&run), 40.0, "{line}");
    }
    let missing = bench.line("--config-file=none oltp_insert run");
    let why = "--config-file=none: it cannot be read";
    assert!(missing.status.code() == Some(2) && stderr(&missing).contains(why));
}

#[test]
fn files_are_tested_in_all_ways_and_for_a_number_of_events() {
    let bench = Bench::new();
    let files = "--file-num=2 --file-total-size=256K";
    done(&bench, &format!("--test=fileio {files} --init-rng=on --debug=off prepare"));
    for options in ["--file-io-mode=mmap", "--file-merged-requests=0 --rand-type=special"] {
        let line = format!("fileio {files} --file-test-mode=rndrw --time=0 --events=40 {options}");
        let run = document(&bench.line(&format!("{line} --json run")), "io");
        assert_eq!(number(&run, "/read/ios") + number(&run, "/write/ios"), 40.0, "{options}");
    }
    let line = format!("fileio {files} --file-test-mode=rndrw --file-merged-requests=8 run");
    let why = "--file-merged-requests=8: requests are never merged; leave it out";
    assert!(stderr(&bench.line(&line)).contains(why));
}

fn every_member_runs(private: &Private, log: &Path) {
    let bench = Bench::new();
    let socket = socket_of(&private.target("root", "sbtest"));
    let line = |options: &str| {
        format!(
            "--db-driver=mysql --mysql-socket={socket} --mysql-user=root --mysql-db=sbtest \
             --mysql-storage-engine=innodb --tables=2 --table_size=500 --threads=2 --time=1 \
             --warmup-time=0 --report-interval=1 --percentile=99 --rand-type=uniform \
             --db-ps-mode=auto --forced-shutdown=1 {options}"
        )
    };
    let prepared = done(&bench, &format!("oltp oltp_read_write {}", line("prepare")));
    assert!(prepared.starts_with("2 tables: 1 K rows"), "{prepared}");
    for member in MEMBERS {
        let events = "--events=40 --json run";
        let output = bench.line(&format!("{member} {}", line(events)));
        let run = document(&output, "tpcc");
        assert_eq!(
            (completed(&run), run["errors"].as_object().unwrap().len()),
            (40.0, 0),
            "{member}"
        );
    }
    let run = bench.line(&format!("oltp_read_only {}", line("run")));
    assert!(stderr(&run).contains("lat (ms,99%)"), "{}", stderr(&run));
    done(&bench, &format!("oltp_read_write {}", line("cleanup")));
    done(&bench, &format!("bulk_insert {}", line("prepare")));
    let run = bench.line(&format!("bulk_insert {}", line("--events=6 --json run")));
    assert_eq!(completed(&document(&run, "tpcc")), 6.0);
    done(&bench, &format!("bulk_insert {}", line("cleanup")));
    let log = std::fs::read_to_string(log).unwrap();
    for statement in [
        "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (",
        "SELECT count(k) FROM sbtest1 WHERE k BETWEEN ",
        "UPDATE `sbtest2` SET `c` = ",
        "DELETE FROM `sbtest1` WHERE `id` = ",
        "INSERT INTO `sbtest2` (`id`, `k`, `c`, `pad`) VALUES (NULL, ",
        "INSERT INTO `sbtest2` (`id`, `k`) VALUES (",
    ] {
        assert!(log.contains(statement), "{statement}");
    }
}

/// Statements of a general log, with how often each came in a transaction: text in lower case
/// without its quotes of names, numbers and strings in it as `?`. What is not sent in every
/// transaction is left out.
fn statements(log: &str, transactions: usize) -> BTreeMap<String, usize> {
    let mut records: Vec<(&str, String)> = Vec::new();
    for line in log.lines() {
        match (record(line), records.last_mut()) {
            (Some((command, text)), _) => records.push((command, text.to_owned())),
            // A statement of several lines.
            (None, Some((_, text))) => *text += &format!(" {line}"),
            (None, None) => {}
        }
    }
    let mut counts = BTreeMap::new();
    for (_, text) in records.iter().filter(|(command, _)| ["Execute", "Query"].contains(command)) {
        *counts.entry(shape(text)).or_insert(0) += 1;
    }
    let often =
        |(shape, count)| Some((shape, count / transactions)).filter(|(_, often)| *often > 0);
    counts.into_iter().filter_map(often).collect()
}

/// The command of a line of the log with its text; none where the line goes on with the one before.
fn record(line: &str) -> Option<(&str, &str)> {
    line.match_indices('\t').find_map(|(tab, _)| {
        let (command, text) = line[tab + 1..].split_once('\t')?;
        let (connection, command) = command.trim_start().split_once(' ')?;
        let is_record = connection.bytes().all(|digit| digit.is_ascii_digit())
            && command.bytes().all(|letter| letter.is_ascii_alphabetic() || letter == b' ');
        is_record.then_some((command, text))
    })
}

/// A statement without its values and without what is only a matter of writing.
fn shape(statement: &str) -> String {
    let mut shape = String::new();
    let mut rest = statement.trim().chars().peekable();
    while let Some(letter) = rest.next() {
        let is_in_word = shape.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match letter {
            '`' => {}
            '\'' => {
                rest.by_ref().find(|one| *one == '\'');
                shape.push('?');
            }
            digit if digit.is_ascii_digit() && !is_in_word => {
                while rest.next_if(char::is_ascii_digit).is_some() {}
                shape.push('?');
            }
            other => shape.extend(other.to_lowercase()),
        }
    }
    // Where a key is counted up, sysbench writes 0.
    let shape = shape.replace("(null", "(?").replace('+', " + ");
    let words = shape.replace(',', " , ").replace('=', " = ").replace('(', " ( ");
    words.replace(')', " ) ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn statements_have_shapes() {
    assert_eq!(
        shape("SELECT `c` FROM `sbtest1` WHERE `id`=17 AND pad = 'a 1'"),
        "select c from sbtest1 where id = ? and pad = ?"
    );
    assert_eq!(
        shape("INSERT INTO sbtest1 (id, k) VALUES (NULL,5)"),
        shape("insert into `sbtest1` (`id`,k) VALUES (0, 7)")
    );
    let log = "241129  1:02:03\t     5 Execute\tSELECT 1\n\t\t     5 Query\tCOMMIT\n\
               \t\t     5 Execute\tSELECT\n  2\n\t\t     5 Query\tCOMMIT\n\t\t     5 Quit\t\n";
    let once = |text: &str| (text.to_owned(), 1);
    assert_eq!(statements(log, 2), [once("select ?"), once("commit")].into_iter().collect());
}

#[test]
fn transactions_send_what_sysbench_sends() {
    const TRANSACTIONS: usize = 20;
    if Command::new("sysbench").arg("--version").output().is_err() {
        eprintln!("skipped: sysbench is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("general.log");
    let options = format!("--general-log-file={}", log.display());
    let Some(private) = Private::start_in(dir, &["--general-log=1", &options]) else { return };
    let bench = Bench::new();
    let socket = socket_of(&private.target("root", "sbtest"));
    let options = format!(
        "--mysql-socket={socket} --mysql-user=root --mysql-db=sbtest --tables=1 --table-size=1000 \
         --threads=1 --time=0 --events={TRANSACTIONS} --rand-type=uniform"
    );
    let sysbench = |member: &str, verb: &str| {
        let words = options.split_whitespace();
        let run = Command::new("sysbench").arg(member).args(words).arg(verb).output().unwrap();
        assert!(run.status.success(), "sysbench {member} {verb}: {}", stdout(&run));
    };
    let logged = |run: &dyn Fn()| {
        let before = std::fs::read(&log).unwrap().len();
        run();
        let all = std::fs::read(&log).unwrap();
        statements(&String::from_utf8_lossy(&all[before..]), TRANSACTIONS)
    };
    sysbench("oltp_read_write", "prepare");
    for member in MEMBERS {
        let mut theirs = logged(&|| sysbench(member, "run"));
        let ours = logged(&|| drop(done(&bench, &format!("{member} {options} run"))));
        // Sessions of ours run with `autocommit = 0`, where it begins by itself.
        theirs.remove("begin");
        assert_eq!(ours, theirs, "{member}");
        assert!(!ours.is_empty(), "{member}");
    }
    drop(private.end());
}

#[test]
fn tables_are_made_and_rows_drawn_in_sysbench_s_words() {
    let Some(private) = Private::start(&[]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "sbtest");
    let tables = format!("--target {target} --table-size=200");
    let made = "--secondary --auto_inc=off --create_table_options=ROW_FORMAT=DYNAMIC";
    done(&bench, &format!("oltp_read_write {tables} {made} prepare"));
    let drawn = "--rand-type=special --rand-spec-pct=10 --rand-spec-res=50 --rand-seed=7";
    let statements = "--range-selects=off --point-selects=3 --index-updates=2 --skip-trx";
    let line = format!("{tables} {drawn} {statements} --events=20 --time=0 --json run");
    let run = document(&bench.line(&format!("oltp_read_write {line}")), "tpcc");
    assert_eq!(completed(&run), 20.0);
    assert_eq!(number(&run, "/driver/statements_per_txn"), 3.0 + 2.0 + 1.0 + 2.0);
    private.hold_in("sbtest", &["DROP INDEX xid ON sbtest1"], || {});
    // Without their transactions, rows of equal ids stay where there is no unique key.
    let ignored = "--mysql-ignore-errors=all --time=1 --json run";
    let run = bench.line(&format!("oltp_insert {tables} {made} {ignored}"));
    assert!(run.status.success(), "{}", stderr(&run));
    drop(private.end());
}

#[test]
fn lines_of_go_tpc_are_taken() {
    let bench = Bench::new();
    let output =
        bench.line("tpcc -H 127.0.0.1 -P 1 -U root -p secret -D test --warehouses 4 run -T 4");
    let said = stderr(&output);
    assert!(said.contains("mysql://root@127.0.0.1:1/test: connecting"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let output = bench.line(
        "tpcc.lua --mysql-host=127.0.0.1 --mysql-port=1 --scale=2 --tables=1 --time=9 \
         --use_fk=0 --force_pk=1 --trx_level=RC prepare",
    );
    assert!(stderr(&output).contains("127.0.0.1:1"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let bench = Bench::new();
    for (line, words) in [
        ("cpu run", &["cpu:", "does not have it"][..]),
        ("oltp memory run", &["memory:"]),
        ("oltp_read_write --tabel-size=5 run", &["--table-size"]),
        ("oltp_read_write --mysql-hots=db run", &["--mysql-host"]),
        ("oltp_read_write --db-driver=pgsql run", &["--db-driver=pgsql: PostgreSQL", "mysql://"]),
        ("tpcc run --mysql_count_ware=8 -D t", &["mysql_count_ware is", "use --warehouses N"]),
        ("tpcc.lua --pgsql_host=h --tables=2 run", &["--pgsql-host=h: PostgreSQL"]),
        ("oltp_read_write --target engine:db --secondary prepare", &["--secondary", "mysql://"]),
        ("oltp_read_write --target engine:db --time=0 run", &["--time 0", "--events"]),
        ("oltp_read_write --target engine:db --rand-pareto-h=2 run", &["--rand-pareto-h 2"]),
        ("oltp_read_write --target engine:db --mysql-host=db run", &["--mysql-host", "--target"]),
    ] {
        let output = bench.line(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{line}: no {word} in {said}"));
    }
}

/// sysbench's line, which makes files in the directory that it is in.
#[test]
fn files_are_measured_in_sysbench_s_words() {
    let bench = Bench::new();
    let files = "--file-total-size=8M --file-num=4";
    let early = bench.line(&format!("fileio {files} --file-test-mode=rndrd run"));
    assert_eq!(early.status.code(), Some(2));
    assert!(stderr(&early).contains("fileio prepare"), "{}", stderr(&early));
    let made = done(&bench, &format!("fileio {files} --file-test-mode=rndrw prepare"));
    assert!(made.contains("4 files of 8 MiB"), "{made}");
    assert_eq!(bench.data_files(), ["test_file.0", "test_file.1", "test_file.2", "test_file.3"]);
    let run = |mode: &str, more: &str| {
        let line = format!("fileio {files} --file-test-mode={mode} --time=1 {more} --json run");
        document(&bench.line(&line), "io")
    };
    for (mode, reads, writes) in [
        ("seqwr", false, true),
        ("seqrewr", false, true),
        ("seqrd", true, false),
        ("rndrd", true, false),
        ("rndwr", false, true),
        ("rndrw", true, true),
    ] {
        let found = run(mode, "--threads=2 --events=400");
        assert_eq!(
            (found["read"].is_object(), found["write"].is_object()),
            (reads, writes),
            "{mode}"
        );
        // All files after every hundred requests of each thread.
        let syncs = found.pointer("/sync/ios").and_then(Value::as_f64).unwrap_or(0.0);
        assert_eq!(syncs > 0.0, writes, "{mode}");
        let ios = |of: &str| found.pointer(of).and_then(Value::as_f64).unwrap_or(0.0);
        let all = ios("/read/ios") + ios("/write/ios");
        assert!((380.0..=400.0).contains(&all), "{mode}: {all}");
    }
    let mixed = run("rndrw", "--file-rw-ratio=4 --file-fsync-all --max-requests=300");
    let share =
        number(&mixed, "/read/ios") / (number(&mixed, "/write/ios") + number(&mixed, "/read/ios"));
    assert!((0.7..0.9).contains(&share), "{share}");
    assert_eq!(number(&mixed, "/sync/ios"), number(&mixed, "/write/ios"));
    let async_mode =
        "--file-io-mode=async --file-extra-flags=direct --file-fsync-freq=0 --events=200";
    assert!(run("rndwr", async_mode)["sync"].is_null());
    std::fs::write(bench.path("test_file.4"), b"mine").unwrap();
    let removed = done(&bench, "fileio --file-num=5 cleanup");
    assert!(removed.contains("4 files are removed"), "{removed}");
    assert_eq!(bench.data_files(), ["test_file.4"], "what it did not make stays");
}

#[test]
fn a_run_ends_after_so_many_transactions_on_the_engine() {
    let bench = Bench::new();
    let target = "--target engine:db --engine buffer_pool_size=64M --table-size=500";
    done(&bench, &format!("oltp_read_write {target} prepare"));
    let line = format!("oltp_read_write {target} --threads=3 --events=100 --time=0 --json run");
    let run: Value = document(&bench.line(&line), "tpcc");
    assert_eq!(completed(&run), 100.0);
}
