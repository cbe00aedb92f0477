//! `iostrata engine stats`.

use iostrata_engine::read_status;
use iostrata_run::{EngineCounter, EngineStatsDocument};

use super::{ending, kept};
use crate::args::EngineCommon;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(common: &EngineCommon) -> Result<(), ExitError> {
    kept(&common.dir)?;
    let page = read_status(&common.dir).map_err(ending)?;
    let counters = page.counters.iter().map(|(row, value)| EngineCounter {
        name: row.name.to_owned(),
        unit: row.unit.to_string(),
        value,
    });
    let document = EngineStatsDocument {
        directory: common.dir.display().to_string(),
        pid: page.process_id,
        is_running: is_running(page.process_id),
        published_unix_s: page.unix_us as f64 / 1e6,
        counters: counters.collect(),
    };
    match common.printing.json {
        true => print_json(&document),
        false => print_text(&text(&document)),
    }
}

/// Whether the process that published is still there.
fn is_running(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// When the page was published, in this machine's time zone.
fn published(unix_s: f64) -> String {
    match jiff::Timestamp::from_millisecond((unix_s * 1e3) as i64) {
        Ok(at) => {
            let here = at.to_zoned(jiff::tz::TimeZone::system());
            format!("at {}", here.strftime("%Y-%m-%d %H:%M:%S %Z"))
        }
        Err(_) => "at a time that is no date".to_owned(),
    }
}

fn text(document: &EngineStatsDocument) -> String {
    let state = if document.is_running { "which runs" } else { "which has ended" };
    let mut text = format!(
        "Published by process {}, {state}, {}\n",
        document.pid,
        published(document.published_unix_s)
    );
    let widest = document.counters.iter().map(|counter| counter.name.len()).max().unwrap_or(0);
    for counter in &document.counters {
        text += &format!("{:widest$}  {:>16} {}\n", counter.name, counter.value, counter.unit);
    }
    text
}
