//! History that grows: purge is too slow, or a view holds it.

use iostrata_plan::Layer;
use iostrata_run::{Advice, Risk, StallCause};
use iostrata_stats::units::{count, seconds};

use super::advised;
use super::recording::Recording;
use crate::server_setting::Family;
use crate::statement::Statement;

/// History that is worth a word, and by how much of itself it must have grown.
const GROWN_MIN: f64 = 10_000.0;
const GROWN_SHARE_MIN: f64 = 0.5;
/// Share of the steps between samples in which history grows.
const STEPS_UP_MIN: f64 = 0.6;
/// Purge that does less than this share of what history grows by stands.
const STANDS_SHARE: f64 = 0.02;
/// A transaction that holds purge back has been open for so long, in seconds, and so much of the
/// growth came meanwhile.
const HELD_S_MIN: f64 = 5.0;
const HELD_SHARE_MIN: f64 = 0.5;
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

    fn beside(&self, said: Statement) -> Statement {
        said.with("history_first", self.first)
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

/// One transaction that was open while history grew.
struct Holder {
    /// How the target names it.
    id: Option<u64>,
    age_s: f64,
}

impl Holder {
    /// The transaction that is the oldest at the end, where half of the growth came while it was.
    fn of(recording: &Recording<'_>, growth: &Growth) -> Option<Self> {
        let oldest = recording.series(|sample| {
            let age_s = sample.oldest_transaction_s.filter(|age_s| *age_s > 0.0)?;
            Some((sample.oldest_transaction_id, age_s, sample.t_s))
        });
        let (id, age_s, t_s) = *oldest.last()?;
        // Since it began, which may be before it was seen: it is queried seldom.
        let lengths = recording.series(|sample| {
            (sample.t_s >= t_s - age_s).then_some(sample.history_list_length? as f64)
        });
        let grown = lengths.last()? - lengths.first()?;
        let is_held = grown >= HELD_SHARE_MIN * (growth.last - growth.first);
        (is_held && age_s >= HELD_S_MIN).then_some(Self { id, age_s })
    }

    /// What it is, and what ends it.
    fn words(&self, family: Family) -> String {
        let age = seconds(self.age_s);
        match (family, self.id) {
            (Family::Engine, Some(id)) => {
                format!("Transaction {id}, open for {age}, holds purge back")
            }
            (Family::Engine, None) => format!("A snapshot, open for {age}, holds purge back"),
            (_, Some(id)) => {
                format!("The transaction of connection {id}, open for {age}, holds purge back")
            }
            (_, None) => format!(
                "A prepared transaction that no connection holds, open for {age}, holds purge back"
            ),
        }
    }

    /// The statement that ends it.
    fn advice(&self, family: Family, text: &str) -> Option<Advice> {
        let id = self.id.filter(|_| family != Family::Engine)?;
        Some(Advice {
            setting: format!("KILL {id}"),
            value: String::new(),
            default: None,
            versions: None,
            source: None,
            where_: "SQL, as its user or with CONNECTION_ADMIN or SUPER".to_owned(),
            why: Vec::new(),
            text: text.to_owned(),
            risk: Risk::Uncommitted,
            undo: "none; its client begins the transaction again".to_owned(),
            expected: None,
        })
    }
}

/// History grows while purge stands, or while one transaction stays open: what would be purged is
/// still seen.
pub(crate) fn held_by_view(recording: &Recording<'_>) -> Option<Statement> {
    let growth = Growth::of(recording)?;
    let holder = Holder::of(recording, &growth);
    if !is_held(recording, &growth, holder.as_ref()) {
        return None;
    }
    let family = recording.family;
    let who = match (&holder, family) {
        (Some(Holder { id: Some(id), .. }), Family::MySql | Family::MariaDb) => {
            format!("let its client end it, or KILL {id}")
        }
        (Some(Holder { id: None, .. }), Family::MySql | Family::MariaDb) => {
            "XA RECOVER lists it; XA COMMIT or XA ROLLBACK ends it".to_owned()
        }
        (_, Family::Engine) => "end the snapshot or transaction that was opened first".to_owned(),
        (None, _) => "it is the first of SELECT trx_mysql_thread_id, trx_started FROM \
                      information_schema.INNODB_TRX ORDER BY trx_started; end it (KILL)"
            .to_owned(),
    };
    let unnamed = "A transaction that was opened before and is still open holds purge back";
    let named = holder.as_ref().map_or(unnamed.to_owned(), |holder| holder.words(family));
    let purge = recording.mean(|sample| sample.purge_per_s);
    let meanwhile = if purge.is_some() { " while purge stood" } else { "" };
    let text = format!("{named}: {}{meanwhile}. No setting helps: {who}.", growth.words());
    let advice = holder.as_ref().and_then(|holder| holder.advice(family, &text));
    let n = purge.as_ref().map_or(recording.document.samples.len() as u64, |purge| purge.n);
    let said = growth
        .beside(Statement::new(Layer::Transactions, n, text))
        .measured("purge_per_s", purge.as_ref());
    let said = match holder {
        Some(Holder { id, age_s }) => {
            said.with("oldest_transaction_s", age_s).with("oldest_transaction_id", id)
        }
        None => said,
    };
    Some(said.advising(advice))
}

/// Whether something holds purge back. Servers do not count what purge does: there the transaction
/// that stays open shows it.
fn is_held(recording: &Recording<'_>, growth: &Growth, holder: Option<&Holder>) -> bool {
    stands(recording, growth).unwrap_or(holder.is_some())
}

/// History grows although purge works.
pub(crate) fn behind(recording: &Recording<'_>) -> Option<Statement> {
    let growth = Growth::of(recording)?;
    let purge = recording.mean(|sample| sample.purge_per_s);
    if is_held(recording, &growth, Holder::of(recording, &growth).as_ref()) {
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
    let more = threads.filter(|threads| *threads < THREADS_MAX && purge.is_some());
    let advice = more.and_then(|threads| {
        let value = (2.0 * threads).min(THREADS_MAX) as u64;
        advised::set(recording, "purge_threads", value, (text.clone(), Risk::None))
    });
    let n = purge.as_ref().map_or(recording.document.samples.len() as u64, |purge| purge.n);
    let said = growth
        .beside(Statement::new(Layer::Engine, n, text))
        .with("purge_stalls", stalls)
        .with("purge_stalled_s", stalled_s)
        .with("purge_threads", threads)
        .measured("purge_per_s", purge.as_ref());
    Some(said.advising(advice))
}
