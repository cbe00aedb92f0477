//! What a server does not report, and what would make it report that.
//!
//! Invariant: pure. Every sentence names a field of the samples and the fix, if any.

use iostrata_database::target::TargetSample;
use iostrata_run::{FIGURES, Figure, FigureKind};

use super::source::{FieldSource, with_metrics};
use super::status_reply::StatusReply;
use super::transaction_count::TransactionCounters;
use crate::flavour::ServerVersion;

/// What the user may not query, with the server's error.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingRights {
    /// INNODB_METRICS.
    pub(crate) metrics: Option<String>,
    /// SHOW ENGINE INNODB STATUS.
    pub(crate) text: Option<String>,
    /// INNODB_TRX.
    pub(crate) transactions: Option<String>,
    /// performance_schema's counter of transactions.
    pub(crate) transaction_events: Option<String>,
    /// performance_schema's counters of files.
    pub(crate) files: Option<String>,
}

/// Whether a sample has the gauge that a figure is.
fn is_in(figure: &Figure, sample: &TargetSample) -> bool {
    matches!(figure.kind, FigureKind::Gauge(field) if field(sample).is_some())
}

/// Sentences on what is missing from a sample.
pub(crate) fn missing(
    told: &StatusReply,
    version: &ServerVersion,
    refused: &MissingRights,
) -> Vec<String> {
    let mut out = Vec::new();
    let sample = told.sample(version);
    let grant = "GRANT PROCESS ON *.* TO this user";
    let is_told = |source: &FieldSource| {
        source.is_in_metrics(told)
            || source.is_in_status(told)
            || source.is_in_text(told)
            // It is computed where nothing reports it.
            || FIGURES.iter().any(|one| one.name == source.figure && is_in(one, &sample))
    };
    let absent: Vec<&str> = with_metrics()
        .filter(|source| !source.figure.is_empty() && !is_told(source))
        .map(|source| source.figure)
        .collect();
    if !absent.is_empty() {
        let fields = absent.join(", ");
        out.push(match &refused.metrics {
            Some(_) => format!(
                "{fields}: this user may not read information_schema.INNODB_METRICS; {grant}"
            ),
            None => format!(
                "{fields}: the server counts them only when they are switched on; add \
                 --enable-counters"
            ),
        });
    }
    if refused.text.is_some() && sample.checkpoint_age_bytes.is_none() {
        out.push(format!(
            "checkpoint age: this version reports it in SHOW ENGINE INNODB STATUS only, which this \
             user may not read; {grant}"
        ));
    }
    if refused.transactions.is_some() {
        out.push(format!(
            "oldest_transaction_s: this user may not read information_schema.INNODB_TRX; {grant}"
        ));
    }
    if refused.files.is_some() {
        out.push(
            "files of undo, temporary tables, the binlog and others: this user may not read \
             performance_schema; GRANT SELECT ON performance_schema.* TO this user"
                .to_owned(),
        );
    } else if !told.has_performance_schema() {
        out.push(
            "files of undo, temporary tables, the binlog and others: performance_schema is off; \
             start the server with performance_schema=ON"
                .to_owned(),
        );
    }
    if told.ended().is_none() {
        out.push("tps: the server reports no Com_commit".to_owned());
    } else if !TransactionCounters::of(told).is_exact() {
        out.push(
            "exact tps: it is put together from other counters, without reads outside of \
             transactions, as the server counts transactions only when that is switched on; add \
             --enable-counters"
                .to_owned(),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::monitor_text::MonitorText;
    use super::*;

    fn of(told: &StatusReply, refused: &MissingRights) -> String {
        missing(told, &ServerVersion::recognise("5.6.24", "MySQL"), refused).join("\n")
    }

    #[test]
    fn who_may_not_ask_is_told_the_grant() {
        let no = || Some("1227".to_owned());
        let refused = MissingRights {
            metrics: no(),
            text: no(),
            transactions: no(),
            transaction_events: no(),
            files: no(),
        };
        let said = of(&StatusReply::default(), &refused);
        assert!(said.contains("oldest_transaction_s: this user may not read"), "{said}");
        assert!(
            said.contains("checkpoint age:") && said.contains("GRANT PROCESS ON *.*"),
            "{said}"
        );
        assert!(!said.contains("--enable-counters"), "{said}");
        assert!(said.contains("GRANT SELECT ON performance_schema.*"), "{said}");
    }

    #[test]
    fn what_is_switched_off_is_told_the_switch() {
        let text = MonitorText {
            lsn: Some(2),
            flushed_lsn: Some(2),
            checkpoint_lsn: Some(1),
            history: Some(0),
            ..MonitorText::default()
        };
        let said = of(&StatusReply { text, ..StatusReply::default() }, &MissingRights::default());
        let line = said.lines().next().unwrap();
        assert!(line.contains("flush_adaptive_pages_per_s") && line.contains("--enable-counters"));
        assert!(!line.contains("checkpoint_age_bytes") && !line.contains("history"), "{line}");
        assert!(!said.contains("oldest_transaction"), "{said}");
        assert!(said.contains("start the server with performance_schema=ON"), "{said}");
    }
}
