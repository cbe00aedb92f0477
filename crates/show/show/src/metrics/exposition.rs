//! What is known of every target, as the text that Prometheus reads, version 0.0.4.
//!
//! Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt::Write;

use iostrata_database::watch::WatchStep;
use iostrata_run::WatchTarget;

use crate::metrics::catalogue::{MetricKind, TargetState, TuneState, metrics, values};

/// The text of all metrics of all targets; a metric that none has is left out.
pub(crate) fn exposition(targets: &[TargetState]) -> String {
    let mut text = String::new();
    for metric in metrics() {
        family(&mut text, metric, targets);
    }
    text
}

fn family(
    text: &mut String,
    (name, kind, help): (&str, MetricKind, &str),
    targets: &[TargetState],
) {
    let mut lines = String::new();
    for (at, one) in targets.iter().enumerate() {
        for (labels, value) in values(name, one) {
            if !value.is_finite() {
                continue;
            }
            let mut all = format!("target=\"{}\"", escaped(&label(targets, at)));
            for (label, word) in labels {
                // Writing to a string does not fail.
                let _written = write!(all, ",{label}=\"{}\"", escaped(&word));
            }
            let _written = writeln!(lines, "{name}{{{all}}} {value}");
        }
    }
    if lines.is_empty() {
        return;
    }
    let kind = match kind {
        MetricKind::Gauge => "gauge",
        MetricKind::Counter => "counter",
    };
    let _written = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
}

/// How a target is named. Metrics of two may not have one name, so a server that is watched as two
/// users has numbers behind it.
fn label(targets: &[TargetState], at: usize) -> String {
    let mut names = targets.iter().take(at + 1).map(|one| without_user(&one.target.name));
    let Some(name) = names.next_back() else { return String::new() };
    match names.filter(|other| *other == name).count() {
        0 => name,
        before => format!("{name}#{}", before + 1),
    }
}

/// An address without its user: the scraper need not know the user.
fn without_user(name: &str) -> String {
    let Some((scheme, rest)) = name.split_once("://") else { return name.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let at = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[at..])
}

/// A label's value: backslash, quotation mark and line feed are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// What is known of every target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    targets: Vec<TargetState>,
}

impl Board {
    /// Nothing is known yet.
    pub fn new(targets: &[WatchTarget]) -> Self {
        let known =
            |target: &WatchTarget| TargetState { target: target.clone(), ..TargetState::default() };
        Self { targets: targets.iter().map(known).collect() }
    }

    /// Takes a sample of the target with this index; other targets are ignored.
    pub fn take(&mut self, index: usize, watched: &WatchStep) {
        if let Some(known) = self.targets.get_mut(index) {
            known.last = Some(watched.clone());
        }
    }

    /// What is done with the target with this index.
    pub fn tuned(&mut self, index: usize, state: TuneState) {
        if let Some(known) = self.targets.get_mut(index) {
            known.tune = Some(state);
        }
    }

    /// All of it in Prometheus's text format.
    pub fn text(&self) -> String {
        exposition(&self.targets)
    }
}

#[cfg(test)]
mod tests {
    use iostrata_run::WatchSample;

    use super::*;

    #[test]
    fn a_label_names_the_server_and_no_user() {
        for (name, label) in [
            ("mysql://b@db1:3306/tpcc", "mysql://db1:3306/tpcc"),
            ("mysql://b%40x@[::1]:3306", "mysql://[::1]:3306"),
            ("mysql://root@localhost/?socket=/a@b", "mysql://localhost/?socket=/a@b"),
            ("mysql://localhost?socket=/a@b", "mysql://localhost?socket=/a@b"),
            ("engine:/srv/a@b", "engine:/srv/a@b"),
        ] {
            assert_eq!(without_user(name), label);
        }
        let twice = ["a", "b"].map(|user| known(&format!("mysql://{user}@db1"), None));
        assert_eq!([0, 1].map(|at| label(&twice, at)), ["mysql://db1", "mysql://db1#2"]);
    }

    fn known(name: &str, last: Option<WatchSample>) -> TargetState {
        let target = WatchTarget { name: name.to_owned(), ..WatchTarget::default() };
        let watched = |sample| WatchStep { sample, ..WatchStep::default() };
        TargetState { target, last: last.map(watched), tune: None }
    }

    #[test]
    fn values_stand_below_their_kind_and_meaning() {
        let sample = WatchSample {
            checkpoint_age_bytes: Some(83_886_080),
            checkpoint_age_pct: Some(12.5),
            stalled: true,
            ..WatchSample::default()
        };
        let text = exposition(&[known("a", Some(sample)), known("b", None)]);
        assert!(text.contains(
            "# HELP iostrata_checkpoint_age_bytes Redo that recovery would read.\n\
             # TYPE iostrata_checkpoint_age_bytes gauge\n\
             iostrata_checkpoint_age_bytes{target=\"a\"} 83886080\n"
        ));
        assert!(text.contains("iostrata_checkpoint_age_ratio{target=\"a\"} 0.125\n"), "{text}");
        assert!(text.contains("# TYPE iostrata_samples_total counter\n"), "{text}");
        assert!(text.contains("iostrata_stalled{target=\"a\"} 1\n"), "{text}");
    }

    #[test]
    fn what_is_not_told_is_left_out() {
        let text = exposition(&[known("a", Some(WatchSample::default())), known("b", None)]);
        for name in ["checkpoint_age", "pending", "transactions_total", "dirty", "device"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        assert!(text.contains("iostrata_target_up{target=\"a\"} 1\n"));
        assert!(!text.contains("iostrata_target_up{target=\"b\"}"), "it was not asked yet");
        let odd = WatchSample { checkpoint_age_pct: Some(f64::NAN), ..WatchSample::default() };
        assert!(!exposition(&[known("a", Some(odd))]).contains("age_ratio"));
    }

    #[test]
    fn a_target_without_an_answer_has_no_figures() {
        let silent = WatchSample { error: Some("gone".to_owned()), ..WatchSample::default() };
        let text = exposition(&[known("a", Some(silent))]);
        assert!(text.contains("iostrata_target_up{target=\"a\"} 0\n"));
        assert!(!text.contains("iostrata_stalled{") && !text.contains("sample_duration"));
    }

    #[test]
    fn what_tune_does_is_told_of_its_target() {
        let settings = vec![("innodb_io_capacity", 350.0)];
        let state = TuneState { is_active: true, changes: 7, settings, ..TuneState::default() };
        let text =
            exposition(&[TargetState { tune: Some(state), ..known("a", None) }, known("b", None)]);
        for line in [
            "# TYPE iostrata_tune_changes_total counter",
            "iostrata_tune_active{target=\"a\"} 1",
            "iostrata_tune_changes_total{target=\"a\"} 7",
            "iostrata_tune_lease{target=\"a\"} 0",
            "iostrata_tune_setting{target=\"a\",setting=\"innodb_io_capacity\"} 350",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(!text.contains("tune_active{target=\"b\"}"), "it is watched only");
    }

    #[test]
    fn labels_are_escaped() {
        let text = exposition(&[known("a\"b\\c\nd", None)]);
        assert!(text.contains("{target=\"a\\\"b\\\\c\\nd\",flavour=\"\""), "{text}");
    }
}
