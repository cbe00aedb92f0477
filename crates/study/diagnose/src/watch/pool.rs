//! The buffer pool: too small for what is read, or held down by the limit of dirty pages.

use iostrata_plan::Layer;
use iostrata_run::{Risk, StallCause, WatchSample};
use iostrata_stats::units::{bytes, count, percent, times};

use super::advised;
use super::recording::Recording;
use crate::statement::Statement;

/// Share of the pages written that went to free frames.
const LRU_SHARE_MIN: f64 = 0.25;
/// Share of the samples in which pages waited for a free frame.
const WAITING_SHARE_MIN: f64 = 0.1;
/// Fewer pages per second are no load.
const LRU_PER_S_MIN: f64 = 20.0;
/// How near to its limit the share of dirty pages is held by it, of the limit.
const AT_LIMIT: f64 = 0.97;
/// Share of the samples at the limit.
const BINDS_SHARE_MIN: f64 = 0.5;
/// Below this checkpoint age redo requires no flushing, in percent of its limit.
const CALM_AGE_PCT: f64 = 60.0;
/// The limit that newer servers have.
const DIRTY_PCT: f64 = 90.0;

/// Pages are written to free frames, and read again.
pub(crate) fn too_small(recording: &Recording<'_>) -> Option<Statement> {
    let size = recording.number("buffer_pool_size")?;
    let (stalls, stalled_s) = recording.stalls(StallCause::FreePages);
    let lru = recording.mean(|sample| sample.flush_lru_pages_per_s);
    let flushed = recording.mean(|sample| sample.flushed_pages_per_s);
    let reads = recording.mean(|sample| Some(sample.device.as_ref()?.reads_per_s));
    let lru_share = lru.as_ref().zip(flushed.as_ref()).and_then(|(lru, flushed)| {
        let is_load = lru.value >= LRU_PER_S_MIN && flushed.value > 0.0;
        is_load.then(|| lru.value / flushed.value)
    });
    let is_evicting = lru_share.is_some_and(|share| share >= LRU_SHARE_MIN);
    let waits = recording.mean(|sample| sample.free_page_waits_per_s);
    let waiting = recording.share(|sample| Some(sample.free_page_waits_per_s? > 0.0));
    let waiting = waiting.filter(|share| *share >= WAITING_SHARE_MIN).zip(waits.as_ref());
    if stalls == 0 && !is_evicting && waiting.is_none() {
        return None;
    }
    let mut seen = Vec::new();
    if stalls > 0 {
        seen.push(format!("it stalled {} for lack of a free page", times(stalls)));
    }
    if let Some((share, waits)) = waiting {
        seen.push(format!(
            "pages waited for a free frame {} times per second, in {} of the samples",
            count(waits.value),
            percent(100.0 * share)
        ));
    }
    if let Some(share) = lru_share.filter(|_| is_evicting) {
        seen.push(format!("{} of the pages written made room", percent(100.0 * share)));
    }
    if let Some(reads) = &reads {
        seen.push(format!("the device read {} times per second", count(reads.value)));
    }
    let text = format!(
        "The pool of {} is too small for this load: {}. A larger one writes and reads less, where \
         the machine has that much memory to spare.",
        bytes(size),
        seen.join(", ")
    );
    let why = (text.clone(), Risk::Memory);
    let advice = advised::set(recording, "buffer_pool_size", (2.0 * size) as u64, why);
    let n = lru.as_ref().or(flushed.as_ref()).map_or(0, |measured| measured.n);
    let said = Statement::new(Layer::Engine, n, text)
        .with("buffer_pool_size_bytes", size)
        .with("free_page_stalls", stalls)
        .with("free_page_stalled_s", stalled_s)
        .with("lru_share", lru_share)
        .measured("flush_lru_pages_per_s", lru.as_ref())
        .measured("flushed_pages_per_s", flushed.as_ref())
        .measured("device_reads_per_s", reads.as_ref())
        .measured("free_page_waits_per_s", waits.as_ref());
    Some(said.advising(advice))
}

/// The limit of dirty pages, not redo, determines what is written.
pub(crate) fn dirty_limit(recording: &Recording<'_>) -> Option<Statement> {
    let limit = recording.number("max_dirty_pages_pct").filter(|limit| *limit > 0.0)?;
    let at_limit = |sample: &WatchSample| Some(sample.dirty_pct? >= AT_LIMIT * limit);
    let share = recording.share(at_limit)?;
    let age = recording.mean(|sample| sample.checkpoint_age_pct)?;
    let dirty = recording.mean(|sample| sample.dirty_pct)?;
    let is_calm = age.value < CALM_AGE_PCT && recording.redo_pressure().is_none();
    if share < BINDS_SHARE_MIN || !is_calm || limit >= DIRTY_PCT {
        return None;
    }
    let text = format!(
        "In {} of the samples {} of the pool was dirty, the limit ({} = {limit}), while the \
         checkpoint age was {} of its own: pages are written more often than redo asks for. More \
         dirty pages make recovery after a crash longer.",
        percent(100.0 * share),
        percent(dirty.value),
        recording.named("max_dirty_pages_pct"),
        percent(age.value),
    );
    let why = (text.clone(), Risk::None);
    let advice = advised::set(recording, "max_dirty_pages_pct", DIRTY_PCT, why);
    let said = Statement::new(Layer::Engine, dirty.n, text)
        .with("max_dirty_pages_pct", limit)
        .with("share_at_limit", share)
        .measured("dirty_pct", &dirty)
        .measured("checkpoint_age_pct", &age);
    Some(said.advising(advice))
}
