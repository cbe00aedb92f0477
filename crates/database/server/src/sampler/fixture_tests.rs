//! What five servers reported under a small load, and every field of the sample that results.

use std::collections::BTreeMap;

use iostrata_database::target::{FileCounts, TargetSample};
use iostrata_run::FileClass;

use super::file_event::FileEvent;
use super::monitor_text::MonitorText;
use super::sample_counts::SampleCounts;
use super::status_reply::StatusReply;
use crate::flavour::ServerVersion;

/// In seconds since 1970; what was reported does not hold it.
const NOW_S: u64 = 1_800_000_000;

/// Those of `EXPECTED`, in its order.
macro_rules! fixtures {
    ($suffix:literal) => {
        [
            include_str!(concat!("../../tests/fixtures/mysql-5.6", $suffix, ".txt")),
            include_str!(concat!("../../tests/fixtures/mysql-9.7", $suffix, ".txt")),
            include_str!(concat!("../../tests/fixtures/mariadb-10.11", $suffix, ".txt")),
            include_str!(concat!("../../tests/fixtures/mariadb-11.4", $suffix, ".txt")),
            include_str!(concat!("../../tests/fixtures/mariadb-11.8", $suffix, ".txt")),
        ]
    };
}

/// A field per line, a server per column: MySQL 5.6 and 9.7, MariaDB 10.11, 11.4 and 11.8. A dash
/// is what is absent. Here with the counters as they are by default.
const EXPECTED: &str = "
started_s                    1799999779 1799999781 1799999782 1799999781 1799999779
checkpoint_age_bytes            7963194    8426355    7057625    7151428    6995481
checkpoint_age_limit_bytes     78959579   87084236   84216915   84216915   84216915
checkpoint_age_async_bytes     73695607   81275125   73689801   73689801   73689801
redo_capacity_bytes           104857600  104857600  104857600  104857600  104857600
redo_end_bytes                  9612003   27946908    7102489    7199161  490215796
redo_durable_bytes              9612003   27946898    7102489    7199161  490215796
log_buffer_waits                      0          0          0          0          0
free_page_waits                       0          0          0          0          0
dirty_pages                         384        420        404        385        395
pages_flushed                        26        345          0          0          0
pages_flushed_lru                     -          -          0          0          0
pool_pages                        32768      32768      32448      32448      32448
history_list_length                  13          6         22          5          7
pending_reads                         0          0          0          0          0
pending_writes                        0          0          0          0          0
pending_syncs                         0          0          0          0          0
transactions                          2          2          2          2          2
row_locks_waiting                     0          0          0          0          0
sessions_running                      0          0          0          0          0
";

/// The same with all counters on.
const EXPECTED_WITH_COUNTERS: &str = "
started_s                    1799999968 1799999970 1799999986 1799999980 1799999975
checkpoint_age_bytes           33945068   31922691   22603603   17076644   23468121
checkpoint_age_limit_bytes     78959579   87086592   84216915   84216915   84216915
checkpoint_age_async_bytes     73695607   81281024   73689801   73689801   73689801
checkpoint_age_sync_bytes      78959579   87086592          -          -          -
redo_capacity_bytes           104857600  104857600  104857600  104857600  104857600
redo_end_bytes                 35571055   54745674   28858321   30882611   28679394
redo_durable_bytes             35571055   54745674   28858321   30882611   28679394
redo_waits                            -          0          -          -          -
log_buffer_waits                      0          0          0          0          0
free_page_waits                       0          0          0          0          0
dirty_pages                         714        581        872        453        889
pages_flushed                         1       2853        669        913        688
pages_flushed_adaptive                0       2207        669        913        688
pages_flushed_lru                     0          0          0          0          0
pages_flushed_background              0        385          0          0          0
pages_flushed_for_redo                0          0          0          0          0
furious_flushes                       0          0          0          0          0
pool_pages                        32768      32768      32448      32448      32448
history_list_length                  40        247        200        369         42
purged                                0          0          0          0          0
pending_reads                         0          0          0          0          0
pending_writes                        0          0          0          0          0
pending_syncs                         0          0          0          0          0
transactions                       2800       2800       2800       2800       2800
row_locks_waiting                     0          0          0          0          0
sessions_running                      0          0          0          0          0
";

/// A server's reply, from one line per item: its kind, its name, its value, its state.
fn told(text: &str) -> (StatusReply, ServerVersion) {
    let mut told = StatusReply { now_s: Some(NOW_S), ..StatusReply::default() };
    let (mut version, mut comment, mut lines) = ("", "", String::new());
    for line in text.lines() {
        let (kind, rest) = line.split_once('\t').unwrap();
        if kind == "text" {
            lines += &format!("{rest}\n");
            continue;
        }
        let (name, value) = rest.split_once('\t').unwrap();
        if kind == "file" {
            let numbers: Vec<Option<u64>> = value.split('\t').map(|one| one.parse().ok()).collect();
            let event = FileEvent::of(name.to_owned(), true, &numbers);
            told.file_events.get_or_insert_default().push(event);
            continue;
        }
        let (value, state) = value.split_once('\t').unwrap_or((value, "1"));
        match (name, value) {
            ("version", value) => version = value,
            ("version_comment", value) => comment = value,
            _ => {}
        }
        let value = match value {
            "ON" => Ok(1),
            other => other.parse(),
        };
        let is_on = ["1", "enabled"].contains(&state);
        let numbers = match kind {
            "status" => &mut told.status,
            "variable" => &mut told.variables,
            _ => &mut told.metrics,
        };
        if let Some(value) = value.ok().filter(|_| is_on) {
            numbers.insert(name.to_owned(), value);
        }
    }
    // As the sampler does, which reads it only then.
    if told.needs_text() {
        told.text = MonitorText::parse(&lines);
    }
    (told, ServerVersion::recognise(version, comment))
}

/// Every field by its name: one that is added has to be named here, and so in the tables.
fn fields(sample: &TargetSample) -> Vec<(&'static str, Option<u64>)> {
    macro_rules! named {
        ($($field:ident),*) => {{
            let TargetSample { oldest_transaction, session_waits: _, files: _, $($field),* } =
                *sample;
            assert_eq!(oldest_transaction, None, "a separate statement reports it");
            vec![$((stringify!($field), $field)),*]
        }};
    }
    named!(
        started_s,
        taken_us,
        checkpoint_age_bytes,
        checkpoint_age_limit_bytes,
        checkpoint_age_async_bytes,
        checkpoint_age_sync_bytes,
        redo_capacity_bytes,
        redo_end_bytes,
        redo_durable_bytes,
        redo_flushes,
        redo_flush_us,
        redo_waits,
        log_buffer_waits,
        free_page_waits,
        dirty_pages,
        pages_flushed,
        pages_flushed_adaptive,
        pages_flushed_lru,
        pages_flushed_background,
        pages_flushed_for_redo,
        furious_flushes,
        pool_pages,
        history_list_length,
        history_list_limit,
        purged,
        pending_reads,
        pending_writes,
        pending_syncs,
        transactions,
        row_locks_waiting,
        sessions_running,
        connections,
        connections_limit,
        connections_refused,
        flow_control_paused_ns,
        selects,
        inserts,
        updates,
        deletes,
        pool_requests,
        pool_reads,
        temporary_tables_on_disk,
        deadlocks,
        binlog_commits,
        binlog_groups,
        replica_lag_s,
        replica_transactions,
        semi_sync_waiting
    )
}

/// Compares samples with a table; counters that no recorded server has are left out.
fn assert_told(fixtures: [&str; 5], expected: &str) {
    let mut expected: BTreeMap<&str, Vec<&str>> = expected
        .trim()
        .lines()
        .map(|line| (line.split_whitespace().next().unwrap(), line))
        .map(|(name, line)| (name, line.split_whitespace().skip(1).collect()))
        .collect();
    let samples = fixtures.map(|text| {
        let (told, version) = told(text);
        fields(&SampleCounts::default().sample(&told, &version, 0))
    });
    for (at, (name, _)) in samples[0].iter().enumerate() {
        let of = |sample: &Vec<(&str, Option<u64>)>| {
            sample[at].1.map_or("-".to_owned(), |value| value.to_string())
        };
        let found = samples.each_ref().map(of);
        let line = expected.remove(name).unwrap_or_else(|| vec!["-"; 5]);
        assert_eq!(found, *line, "{name}");
    }
    assert!(expected.is_empty(), "{expected:?}");
}

#[test]
fn every_field_is_understood() {
    assert_told(fixtures!(""), EXPECTED);
}

#[test]
fn every_field_is_understood_while_counters_are_on() {
    assert_told(fixtures!("-counters"), EXPECTED_WITH_COUNTERS);
}

/// What was done with the files of each class, a number per line and a server per column, with
/// performance_schema. A dash is what is absent, and so is a line that no server reports.
const EXPECTED_FILES: &str = "
data.reads                          175          863          174          184          188
data.read_bytes                 4931584     14336000      4964352      5128192      5193728
data.read_ns                   27032544    528328787    222384996     94471560     97501389
data.writes                        1651         3002         2064         2104         2116
data.written_bytes             92618752    103350272     35373056     36323328     36683776
data.write_ns                 210533441    248768060     49887285    186790298    133772989
data.syncs                          145          273          200          228          230
data.sync_ns                  427007261    418678739    385539468    453643778    352154371
redo.reads                            6            8            -            -            -
redo.read_bytes                   69632        69120            -            -            -
redo.read_ns                      22760      5041879            -            -            -
redo.writes                          91         4826          116          144          114
redo.written_bytes             33408512     36677120     33539620     35966799     33411699
redo.write_ns                  31715191    153165071            -            -            -
redo.syncs                           97          525            -            -            -
redo.sync_ns                  235048439    999501555            -            -            -
doublewrite.reads                     -            2            -            -            -
doublewrite.read_bytes                -     16777216            -            -            -
doublewrite.read_ns                   -     16743304            -            -            -
doublewrite.writes                   18           55            7           10           10
doublewrite.written_bytes      25329664     45613056      1671168      2015232      2179072
doublewrite.write_ns                  -     47606410            -            -            -
doublewrite.syncs                     -            6            -            -            -
doublewrite.sync_ns                   -        82106            -            -            -
temporary.reads                       -        35288            -            -            -
temporary.read_bytes                  -    458092453            -            -            -
temporary.read_ns                     -    223111978            -            -            -
temporary.writes                      -        10467            -            -            -
temporary.written_bytes               -    569088520            -            -            -
temporary.write_ns                    -    977381074            -            -            -
temporary.syncs                       -          133            -            -            -
temporary.sync_ns                     -    102578169            -            -            -
binlog.reads                          1            3            0            0            0
binlog.read_bytes                     0           32            0            0            0
binlog.read_ns                     3937         7602            0            0            0
binlog.writes                        97         3441          606          690          691
binlog.written_bytes              22444     27202768     27050246     27050246     27178437
binlog.write_ns                 1442774     67133679     27887515     23590796     33358706
binlog.syncs                         17           95          108           13           13
binlog.sync_ns                  4851335    277018039    279613185      6228913     27442778
other.reads                        1050           10          118          118          118
other.read_bytes               64342698       461804       235620       234923       236597
other.read_ns                  33117926       363664     12872807      1542382     14212184
other.writes                        566            1           50           50           50
other.written_bytes            64114441            6        12198        12198        12969
other.write_ns                 69250048         8667       225915       484495       418072
other.syncs                         604           28          212          213          213
other.sync_ns                 119394942      2878977    136808815    109496529    112478384
";

/// The same from status.
const EXPECTED_STATUS_FILES: &str = "
data.reads                          165          850          165          169          173
data.read_bytes                 2703360     13926400      2703360      2768896      2834432
data.writes                        1546         5701         2057         2094         2106
data.written_bytes             25329664     93405184     33701888     34308096     34504704
redo.writes                          88         4771          116          144          114
redo.written_bytes             34174464     36370432     33539620     35966799     33411699
redo.syncs                           99          287            -            -            -
doublewrite.writes                   18           55            7           10           10
doublewrite.written_bytes      25329664     45613056      1671168      2015232      2179072
";

#[test]
fn files_are_understood_by_class() {
    assert_files(EXPECTED_FILES, |_| {});
}

#[test]
fn without_performance_schema_files_are_understood_from_status() {
    assert_files(EXPECTED_STATUS_FILES, |told| {
        told.file_events = None;
        told.variables.remove("performance_schema");
    });
}

fn assert_files(expected: &str, change: impl Fn(&mut StatusReply)) {
    let mut found: Vec<String> = Vec::new();
    let columns = fixtures!("-files").map(|text| {
        let (mut told, _) = told(text);
        change(&mut told);
        told.files().unwrap()
    });
    for class in FileClass::ALL {
        type Field = fn(&FileCounts) -> Option<u64>;
        let fields: [(&str, Field); 8] = [
            ("reads", |one| one.reads),
            ("read_bytes", |one| one.read_bytes),
            ("read_ns", |one| one.read_ns),
            ("writes", |one| one.writes),
            ("written_bytes", |one| one.written_bytes),
            ("write_ns", |one| one.write_ns),
            ("syncs", |one| one.syncs),
            ("sync_ns", |one| one.sync_ns),
        ];
        for (name, field) in fields {
            let told = columns.iter().map(|table| table.get(class).and_then(field));
            let cells = told.map(|one| {
                let text = one.map_or("-".to_owned(), |one| one.to_string());
                format!(" {text:>12}")
            });
            let cells: String = cells.collect();
            let is_told = cells.contains(|c: char| c.is_ascii_digit());
            found.extend(
                is_told.then(|| format!("{:<26}{cells}", format!("{}.{name}", class.word()))),
            );
        }
    }
    let found = found.join("\n");
    assert!(found == expected.trim(), "found:\n{found}");
}
