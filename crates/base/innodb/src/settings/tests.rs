//! Settings against their rows of the catalogue.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::COUNTERS;

#[test]
fn every_default_is_what_the_catalogue_says_and_goes_with_the_others() {
    let defaults = Settings::default();
    for setting in CATALOGUE {
        let printed = defaults.get(setting.name).unwrap();
        let is_in_words = setting.name == "redo_directory";
        assert!(is_in_words || printed == setting.default, "{}: {printed}", setting.name);
        let mut again = defaults.clone();
        again.set(setting.name, &printed).unwrap();
        assert_eq!(again, defaults, "{}", setting.name);
    }
    defaults.check().unwrap();
}

#[test]
fn a_server_has_what_is_promised() {
    let settings = Settings::for_server(16 << 30);
    for (name, value) in [
        ("buffer_pool_size", "4G"),
        ("redo_log_capacity", "2G"),
        ("autoextend_increment", "64M"),
        ("flush_method", "O_DIRECT"),
        ("flush_log_at_commit", "1"),
        ("page_size", "16K"),
        ("data_files", "4"),
        ("doublewrite", "ON"),
        ("policy", "steady"),
        ("trust_device_cache", "OFF"),
    ] {
        assert_eq!(settings.get(name).unwrap(), value, "{name}");
    }
}

#[test]
fn the_pool_of_any_machine_works() {
    for memory in [0, 1, 1 << 20, 700 << 20, 16 << 30, 3 << 40, u64::MAX] {
        let settings = Settings::for_server(memory);
        assert_eq!(settings.buffer_pool_size % (1 << 20), 0, "{memory}");
        settings.check().unwrap_or_else(|error| panic!("{memory}: {error}"));
    }
}

#[test]
fn the_smallest_engine_is_allowed() {
    let mut settings = Settings::default();
    for (name, value) in [
        ("page_size", "4K"),
        ("buffer_pool_size", "256K"),
        ("redo_log_capacity", "64K"),
        ("log_buffer_size", "16K"),
    ] {
        settings.set(name, value).unwrap();
    }
    settings.check().unwrap();
    assert_eq!(settings.frames(), FRAMES_MIN);
}

#[test]
fn names_are_innodbs_in_any_spelling() {
    let mut settings = Settings::default();
    for (name, value) in [
        ("innodb_io_capacity", "300"),
        ("INNODB-IO-CAPACITY", "400"),
        ("io-capacity", "500"),
        (" io_capacity ", " 600 "),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("flush-log-at-commit", "0"),
        ("innodb_log_group_home_dir", "/redo"),
    ] {
        settings.set(name, value).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(settings.get(name).unwrap(), value.trim(), "{name}");
    }
}

#[test]
fn names_and_aliases_are_distinct_and_every_sentence_is_one() {
    let mut seen = std::collections::BTreeSet::new();
    for setting in CATALOGUE {
        for name in std::iter::once(setting.name).chain(setting.aliases.iter().copied()) {
            assert!(seen.insert(name), "{name} twice");
            assert_eq!(find(name), Some(setting));
        }
        assert!(setting.doc.ends_with('.') && !setting.doc.contains(['\n', '|']), "{setting:?}");
    }
}

#[test]
fn what_is_not_taken_is_refused_with_what_is() {
    let before = Settings::default();
    let mut settings = before.clone();
    for (name, value, takes) in [
        ("page_size", "24K", "a power of two from 4K to 64K"),
        ("page_size", "2K", "a power of two from 4K to 64K"),
        ("buffer_pool_size", "many", "a size from 256K to 16T"),
        ("io_capacity", "-1", "a whole number from 1 to 10000000"),
        ("io_capacity", "+5", "a whole number"),
        ("io_capacity", "1e3", "a whole number"),
        ("data_files", "4294967297", "a whole number from 1 to 64"),
        ("max_dirty_pages_pct", "100", "a percentage from 0 to 99.99"),
        ("max_dirty_pages_pct", "NaN", "a percentage"),
        ("flush_sync", "maybe", "ON or OFF"),
        ("flush_method", "direct", "one of fsync, O_DSYNC, O_DIRECT"),
        ("policy", "legacy", "one of fixed-100, io-capacity, reflex"),
        ("redo_directory", "a\nb", "a directory on one line"),
    ] {
        let error = settings.set(name, value).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(value) && error.contains(takes), "{error}");
    }
    assert_eq!(settings, before, "a refused value changes nothing");
    let error = settings.set("io_capacty", "1").unwrap_err().to_string();
    assert!(error.contains("`io_capacty`") && error.contains("io_capacity?"), "{error}");
}

#[test]
fn what_does_not_go_together_is_refused_with_both_values() {
    for (pairs, says) in [
        (vec![("page_size", "64K"), ("buffer_pool_size", "2M")], "at least 64 pages, that is 4M"),
        (vec![("page_size", "16K"), ("redo_log_capacity", "128K")], "at least 16 pages"),
        (vec![("page_size", "64K"), ("log_buffer_size", "128K")], "at least 4 pages"),
        (vec![("io_capacity_max", "100")], "io_capacity_max must be at least 10000"),
        (
            vec![("max_dirty_pages_pct", "50"), ("max_dirty_pages_pct_lwm", "60")],
            "must be at most 50",
        ),
    ] {
        let mut settings = Settings::default();
        for (name, value) in &pairs {
            settings.set(name, value).unwrap();
        }
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(says), "{pairs:?}: {error}");
        assert!(error.contains(pairs[0].1), "{pairs:?}: {error}");
    }
}

#[test]
fn a_field_written_out_of_range_is_found() {
    let pool = Settings { buffer_pool_size: 1, ..Settings::default() };
    let dirty = Settings { max_dirty_pages_pct: f64::NAN, ..Settings::default() };
    let directory = Some(std::path::PathBuf::from("a\nb = c"));
    let redo = Settings { redo_directory: directory, ..Settings::default() };
    for settings in [pool, dirty, redo] {
        assert!(matches!(settings.check(), Err(SettingError::Value { .. })), "{settings:?}");
    }
}

#[test]
fn io_capacity_takes_its_ceiling_along() {
    let mut settings = Settings::default();
    settings.set("io_capacity", "30000").unwrap();
    assert_eq!(settings.io_capacity_max, 60_000);
    settings.set("io_capacity", "50000").unwrap();
    assert_eq!(settings.io_capacity_max, 60_000);
    settings.set("io_capacity_max", "40000").unwrap();
    assert!(settings.check().is_err());
    settings.set("io_capacity", "10000000").unwrap();
    settings.check().unwrap();
}

#[test]
fn a_running_engine_changes_what_may_change() {
    let mut settings = Settings::default();
    settings.set_live("redo-log-capacity", "4G").unwrap();
    assert_eq!(settings.redo_log_capacity, 4 << 30);
    let before = settings.clone();
    let error = settings.set_live("page_size", "4K").unwrap_err().to_string();
    assert!(error.contains("when the data is created"), "{error}");
    let error = settings.set_live("flush_method", "fsync").unwrap_err().to_string();
    assert!(error.contains("when the engine opens"), "{error}");
    assert!(settings.set_live("redo_log_capacity", "64K").is_err(), "too small for the pages");
    assert_eq!(settings, before);
}

#[test]
fn what_creation_decides_cannot_be_opened_otherwise() {
    let kept = Settings::default();
    let mut asked = Settings { io_capacity: 77, ..kept.clone() };
    asked.check_reopen(&kept).unwrap();
    asked.set("data_files", "8").unwrap();
    let error = asked.check_reopen(&kept).unwrap_err().to_string();
    assert!(error.contains("data_files is 8") && error.contains("open it with 4"), "{error}");
}

#[test]
fn text_keeps_what_differs_and_what_creation_decides() {
    let defaults = Settings::for_server(8 << 30);
    let mut settings = defaults.clone();
    settings.set("io_capacity", "400").unwrap();
    let text = settings.to_text(&defaults);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines,
        ["page_size = 16K", "data_files = 4", "redo_directory = ", "io_capacity = 400"]
    );
}

#[test]
fn a_text_of_the_first_version_says_the_same_as_then() {
    let text = "page_size = 16K\ndata_files = 4\nredo_directory = \n";
    let settings = Settings::from_text(text, Settings::left_out()).unwrap();
    let expected = [
        ("redo_log_capacity", "2G"),
        ("autoextend_increment", "64M"),
        ("buffer_pool_size", "128M"),
        ("log_buffer_size", "16M"),
        ("doublewrite_pages", "128"),
        ("io_capacity", "10000"),
        ("flush_method", "O_DIRECT"),
    ];
    for (name, value) in expected {
        assert_eq!(settings.get(name).unwrap(), value, "{name}");
    }
}

#[test]
fn text_is_read_with_comments_and_refused_by_line() {
    let read = |text| Settings::from_text(text, Settings::default());
    let settings = read("# a\n\n  innodb_io_capacity=5 \r\npage_size = 8K\n").unwrap();
    assert_eq!((settings.io_capacity, settings.page_size), (5, 8192));
    for (text, says) in [
        ("# a\npage_siz = 8K", "line 2: there is no setting `page_siz`; did you mean page_size?"),
        ("page_size = 8", "line 1: page_size is `8`"),
        ("page_size", "line 1 is `page_size`; write name = value"),
        ("io_capacity = 5\n\nio-capacity = 6", "line 3 sets io_capacity again; line 1 did"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

/// A text that a setting takes.
fn taken(kind: ValueKind) -> BoxedStrategy<String> {
    match kind {
        ValueKind::Size { min, max, is_power_of_two: true } => {
            (min.ilog2()..=max.ilog2()).prop_map(|shift| (1_u64 << shift).to_string()).boxed()
        }
        ValueKind::Size { min, max, .. } => {
            // Beyond 53 bits a size typed in bytes is rounded.
            (min..=max.min(1 << 53)).prop_map(|bytes| bytes.to_string()).boxed()
        }
        ValueKind::Count { min, max } => (min..=max).prop_map(|count| count.to_string()).boxed(),
        ValueKind::Percent { min, max } => (min..=max).prop_map(|share| share.to_string()).boxed(),
        ValueKind::Switch => prop_oneof!["ON", "off", "1", "0", "yes", "False"].boxed(),
        ValueKind::Choice(words) => prop::sample::select(words).prop_map(str::to_owned).boxed(),
        ValueKind::Directory => "(/[a-z =#.-]{0,8}[a-z])?".boxed(),
    }
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let values: Vec<_> = CATALOGUE.iter().map(|setting| taken(setting.kind)).collect();
    values.prop_map(|values| {
        let mut settings = Settings::default();
        for (setting, value) in CATALOGUE.iter().zip(values) {
            settings.set(setting.name, &value).unwrap();
        }
        settings.io_capacity_max = settings.io_capacity_max.max(settings.io_capacity);
        settings
    })
}

proptest! {
    #[test]
    fn every_value_in_range_is_taken_and_prints_as_itself(settings in any_settings()) {
        let mut again = Settings::default();
        for setting in CATALOGUE {
            again.set(setting.name, &settings.get(setting.name).unwrap()).unwrap();
        }
        prop_assert_eq!(again, settings);
    }

    #[test]
    fn text_comes_back_as_it_went(settings in any_settings(), defaults in any_settings()) {
        let text = settings.to_text(&defaults);
        prop_assert_eq!(Settings::from_text(&text, defaults).unwrap(), settings);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}|([a-z_]{0,12} ?= ?[ -~]{0,12}\n){0,4}") {
        let _refused = Settings::from_text(&text, Settings::default());
        let mut settings = Settings::default();
        let _refused = settings.set(&text, &text);
        for setting in CATALOGUE {
            let _refused = settings.set(setting.name, &text);
        }
    }
}

#[test]
fn a_small_redo_goes_with_any_pool() {
    let mut settings = Settings::default();
    for (name, value) in
        [("page_size", "4K"), ("redo_log_capacity", "64K"), ("buffer_pool_size", "16T")]
    {
        settings.set(name, value).unwrap();
    }
    settings.check().unwrap();
    settings.set("page_size", "16K").unwrap();
    let refused = settings.check().unwrap_err().to_string();
    assert!(refused.contains("redo_log_capacity must be at least 16 pages"), "{refused}");
}

// docs/settings.md shows both catalogues. `UPDATE_DOCS=1` writes it again.

const BEFORE: &str = "# Settings and counters of the embedded engine

Written from the catalogues in `crates/base/innodb`; \
`UPDATE_DOCS=1 cargo test -p iostrata-innodb documented` writes it again.

## Settings
Names are InnoDB's without the prefix `innodb_`, which is taken as well; a dash is an underscore. \
Sizes take K, M, G, T as powers of 1024. What differs from its default is kept with the data, one \
`name = value` per line, and can be given again when it is opened. The last column is the default \
of MySQL 8.4, where InnoDB has the setting.

| setting | takes | default | may change | what it does | InnoDB's default |
|---|---|---|---|---|---|
";

const TOGETHER: &str = "
Together: `buffer_pool_size` is at least 64 pages, `redo_log_capacity` 16 pages and \
`log_buffer_size` 4 pages; `io_capacity_max` is at least `io_capacity`, and \
`max_dirty_pages_pct_lwm` at most `max_dirty_pages_pct`.

No rule ties the redo to the pool. The redo must hold the largest single change, for which 16 pages \
are enough, and what those append who were admitted already: a third of it, or 32M, is kept for \
them, and every change is promised its room before it is made. So too little redo for many writers \
makes them wait, and none runs over it. Under a large pool a small redo only makes pages be written \
sooner: dirty is what the last of it changed, whatever else the pool holds. InnoDB refuses a redo \
that is too small for its threads, and asks for no share of the pool either.

The defaults are for an engine inside another program: a new one writes about 45 MB. \
`Engine::server_settings` gives those for a machine that serves one engine: `buffer_pool_size` 25 % \
of memory, `redo_log_capacity` 2G, `autoextend_increment` 64M; a new one writes 2.2 GB then. All \
three can be changed later, the redo while the engine runs.

### Where they differ from InnoDB's
- `flush_method`: `O_DIRECT_NO_FSYNC` and `ALL_O_DIRECT` leave out syncs of data as InnoDB does \
only with `trust_device_cache = ON`; without it they sync where a device with a volatile cache \
needs it.
- `log_write_ahead_size`: every commit writes at least one such block, so the default is the block \
of the device and not twice it.
- `max_dirty_pages_pct_lwm`: pages that may be changed again are not written while there is room \
for redo and for pages.

## Counters
`iostrata engine stats DIR` prints them. Names are those of SHOW GLOBAL STATUS without `Innodb_`, \
and of INFORMATION_SCHEMA.INNODB_METRICS; \"ours\" are this engine's own. A counter grows from 0 \
since the engine opened, a gauge is what is now.

| counter | unit | kind | what it counts | InnoDB's name |
|---|---|---|---|---|
";

const AFTER: &str = "
## The status page
A running engine publishes its counters on a page of 4096 bytes, little endian:

| bytes | what |
|---|---|
| 0..8 | `IOSTATUS` |
| 8..12 | version, 1 |
| 12..16 | process |
| 16..24 | hash of the table of counters: a reader of another table refuses the page |
| 24..32 | sequence, grows with every publication |
| 32..40 | Unix time in microseconds |
| 40.. | the counters in the order above, 8 bytes each; then zeros |
| 4080..4084 | crc32c of bytes 0..4080 |
| 4088..4096 | the sequence again |

A page whose sequences differ or whose sum is wrong was being written: it is read again.
";

fn settings_table(text: &mut String) {
    for setting in CATALOGUE {
        let aliases: String = setting.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
        let theirs = setting.innodb.map_or_else(String::new, |innodb| {
            let is_plain = innodb.name.trim_start_matches("innodb_") == setting.name;
            let name = if is_plain { String::new() } else { format!(" (`{}`)", innodb.name) };
            format!("{}{name}", innodb.default)
        });
        let _never_fails = writeln!(
            text,
            "| `{}`{aliases} | {} | {} | {} | {} | {theirs} |",
            setting.name, setting.kind, setting.default, setting.when, setting.doc
        );
    }
}

fn counters_table(text: &mut String) {
    for row in COUNTERS {
        let theirs =
            row.innodb_name().map_or_else(|| "ours".to_owned(), |name| format!("`{name}`"));
        let _never_fails = writeln!(
            text,
            "| `{}` | {} | {} | {} | {theirs} |",
            row.name, row.unit, row.kind, row.doc
        );
    }
}

fn document() -> String {
    let mut text = BEFORE.to_owned();
    settings_table(&mut text);
    text.push_str(TOGETHER);
    counters_table(&mut text);
    text.push_str(AFTER);
    text
}

#[test]
fn the_page_shows_every_setting_and_counter() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/settings.md");
    let now = document();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, now).unwrap();
        return;
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == now, "run UPDATE_DOCS=1 cargo test -p iostrata-innodb documented");
}
