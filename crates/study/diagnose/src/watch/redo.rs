//! Redo logs that are too small for the redo that is made.

use iostrata_plan::Layer;
use iostrata_run::Risk;
use iostrata_stats::units::{bytes, seconds};

use super::advised;
use super::recording::{LIMIT_SHARE, Recording};
use crate::advice::{CAPACITY_BYTES, CAPACITY_BYTES_MAX_OLD, HOLDS_S, whole};
use crate::statement::Statement;

/// Where redo is pressed, a log that holds less than this is too small.
const HOLDS_S_MIN: f64 = 300.0;
/// Longest time that flushing everything before a planned end may take.
const DRAIN_S_MAX: f64 = 600.0;

/// The log holds minutes of redo, and ran full.
pub(crate) fn too_small(recording: &Recording<'_>) -> Option<Statement> {
    let pressure = recording.redo_pressure()?;
    let redo = recording.mean(|sample| sample.redo_bytes_per_s).filter(|redo| redo.value > 0.0)?;
    let (setting, capacity) = recording.redo_capacity()?;
    let limit = recording.age_limit().unwrap_or(LIMIT_SHARE * capacity);
    let holds_s = limit / redo.value;
    // The whole interval of the rate: what is only perhaps too small is left.
    let slowest = redo.ci95.map_or(redo.value, |[low, _]| low);
    if limit <= 0.0 || slowest <= 0.0 || limit / slowest >= HOLDS_S_MIN {
        return None;
    }
    // How many pages a full log of a size leaves dirty, and how long writing them takes.
    let per_byte = recording.dirty_pages_per_age_byte();
    let flushed = recording.flushed_per_s_best().filter(|pages| *pages > 0.0);
    let drain = |limit: f64| Some(limit * per_byte? / flushed?);
    let wanted = HOLDS_S * redo.value;
    let drainable = per_byte.zip(flushed).map(|(pages, rate)| DRAIN_S_MAX * rate / pages);
    let wanted = drainable.map_or(wanted, |most| wanted.min(most)).max(limit);
    let advised = wanted / limit * capacity;
    let is_old = ((8, 0, 30)..(8, 0, 34)).contains(&recording.version);
    let [least, most] = CAPACITY_BYTES;
    let most = if is_old { CAPACITY_BYTES_MAX_OLD } else { most };
    let advised = whole(advised.clamp(least, most));
    let new_limit = advised / capacity * limit;
    let text = format!(
        "The redo log holds {} of redo at {}/s, and {}. One of {} holds {}{}.",
        seconds(holds_s),
        bytes(redo.value),
        pressure.words(),
        bytes(advised),
        seconds(new_limit / redo.value),
        drain(new_limit)
            .map(|s| format!("; flushing all of it takes {}", seconds(s)))
            .unwrap_or_default(),
    );
    // Of several files each has its part.
    let files = recording.number("log_files_in_group").filter(|_| setting == "log_file_size");
    let why = (text.clone(), Risk::None);
    let advice = (advised > capacity)
        .then(|| advised::set(recording, setting, (advised / files.unwrap_or(1.0)) as u64, why))
        .flatten();
    let said = pressure
        .beside(Statement::new(Layer::Engine, redo.n, text))
        .measured("redo_bytes_per_s", &redo)
        .with("redo_capacity_bytes", capacity)
        .with("checkpoint_age_limit_bytes", limit)
        .with("holds_s", holds_s)
        .with("drain_s", drain(limit))
        .with("flushed_pages_per_s_best", flushed)
        .with("redo_capacity_advised_bytes", advised)
        .with("holds_advised_s", new_limit / redo.value)
        .with("drain_advised_s", drain(new_limit));
    Some(said.advising(advice))
}
