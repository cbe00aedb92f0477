//! docs/settings.md shows both catalogues. `UPDATE_DOCS=1` writes it again.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::COUNTERS;

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
