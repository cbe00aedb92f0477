//! History that grows: purge is too slow, or a view holds it.

use iostrata_run::{FindingKind, Risk, StallCause};
use iostrata_spec::Layer;
use iostrata_units::{count, seconds};

use super::evidence::{Evidence, finding};
use super::recording::{Family, Recording};
use super::{Concluded, advised};

const BEHIND: &str = "purge_behind";
const HELD: &str = "purge_held_by_view";
/// History that is worth a word, and by how much of itself it must have grown.
const GROWN_MIN: f64 = 10_000.0;
const GROWN_SHARE_MIN: f64 = 0.5;
/// Share of the steps between samples in which history grows.
const STEPS_UP_MIN: f64 = 0.6;
/// Purge that does less than this share of what history grows by stands.
const STANDS_SHARE: f64 = 0.02;
/// More threads than this were not seen to help.
const THREADS_MAX: f64 = 8.0;

/// How history grew over the recording.
struct Growth {
    first: f64,
    last: f64,
    per_s: f64,
    lasted_s: f64,
}

impl Growth {
    fn of(recording: &Recording<'_>) -> Option<Self> {
        let history = |sample: &iostrata_run::WatchSample| {
            sample.history_list_length.map(|length| length as f64)
        };
        let ([first, last], lasted_s) = recording.ends(history)?;
        let lengths = recording.series(history);
        let steps = lengths.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let up = lengths.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let grown = last - first;
        let is_steady = up as f64 >= STEPS_UP_MIN * steps as f64;
        let is_much = grown >= GROWN_MIN && grown >= GROWN_SHARE_MIN * first;
        (is_steady && is_much).then(|| Self { first, last, per_s: grown / lasted_s, lasted_s })
    }

    fn evidence(&self) -> Evidence {
        Evidence::default()
            .with("history_first", self.first)
            .with("history_last", self.last)
            .with("history_growth_per_s", self.per_s)
            .with("history_seconds", self.lasted_s)
    }

    fn words(&self) -> String {
        let (first, last) = (count(self.first), count(self.last));
        format!("history grew from {first} to {last} in {}", seconds(self.lasted_s))
    }
}

/// Whether purge stands: it removes next to nothing of what is added.
fn stands(recording: &Recording<'_>, growth: &Growth) -> Option<bool> {
    let purge = recording.mean(|sample| sample.purge_per_s)?;
    Some(purge.value < STANDS_SHARE * growth.per_s)
}

/// History grows while purge stands: an old view needs what would be purged.
pub(super) fn held_by_view(recording: &Recording<'_>) -> Option<Concluded> {
    let growth = Growth::of(recording)?;
    if !stands(recording, &growth)? {
        return None;
    }
    let purge = recording.mean(|sample| sample.purge_per_s)?;
    let who = match recording.family {
        Family::Engine => "end the snapshot or transaction that was opened first",
        _ => {
            "it is the first of SELECT trx_mysql_thread_id, trx_started FROM \
             information_schema.INNODB_TRX ORDER BY trx_started; end it (KILL)"
        }
    };
    let text = format!(
        "A transaction that was opened before and is still open holds purge back: {} while purge \
         stood. No setting helps: {who}.",
        growth.words()
    );
    let evidence = growth.evidence().measured("purge_per_s", &purge);
    let layer = Layer::Transactions;
    let finding = finding(HELD, FindingKind::Loss, layer, text, (purge.n, evidence));
    Some(Concluded::only(finding))
}

/// History grows although purge works.
pub(super) fn behind(recording: &Recording<'_>) -> Option<Concluded> {
    let growth = Growth::of(recording)?;
    let purge = recording.mean(|sample| sample.purge_per_s);
    // Whether purge stands is not known where the target does not count it.
    if stands(recording, &growth) == Some(true) {
        return None;
    }
    let (stalls, stalled_s) = recording.stalls(StallCause::Purge);
    let threads = recording.number("purge_threads");
    let text = format!(
        "Purge does not keep up: {}{}.",
        growth.words(),
        purge
            .as_ref()
            .map(|purge| format!(", {} commits were purged per second", count(purge.value)))
            .unwrap_or_default(),
    );
    let mut evidence = growth
        .evidence()
        .with("purge_stalls", stalls)
        .with("purge_stalled_s", stalled_s)
        .with("purge_threads", threads);
    if let Some(purge) = &purge {
        evidence = evidence.measured("purge_per_s", purge);
    }
    let more = threads.filter(|threads| *threads < THREADS_MAX && purge.is_some());
    let advice = more.and_then(|threads| {
        let value = (2.0 * threads).min(THREADS_MAX) as u64;
        advised::set(recording, "purge_threads", value, (BEHIND, text.clone(), Risk::None))
    });
    let n = purge.as_ref().map_or(recording.document.samples.len() as u64, |purge| purge.n);
    let finding = finding(BEHIND, FindingKind::Loss, Layer::Engine, text, (n, evidence));
    Some(Concluded { finding, advice: advice.into_iter().collect() })
}
