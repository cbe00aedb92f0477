//! `innodb_io_capacity_max` from the flush capacity: an upper bound.
//!
//! What a server has to flush follows from its load's redo, which `watch` measures; what the device
//! takes only bounds it. So nothing is advised where the device takes what servers ask for by
//! default.

use iostrata_run::Advice;
use iostrata_stats::units::{count, microseconds, seconds};

use super::{Found, SettingPlace, line};
use crate::finding::sizing::FLUSH_CAPACITY;
use crate::finding::steady::LASTING_RATE;
use crate::withheld::is_withheld;

const SETTING: &str = "innodb_io_capacity_max";
/// The default of servers before MySQL 8.4: what takes more needs no bound.
const DEFAULT: f64 = 2_000.0;
/// InnoDB's smallest value.
pub(crate) const LEAST: f64 = 100.0;

pub(super) fn io_capacity_max(found: &Found<'_>) -> Option<Advice> {
    if is_withheld(found.findings) {
        return None;
    }
    let number = |name: &str| found.number(FLUSH_CAPACITY, name);
    let (pages, p99_us) = (number("pages_per_s")?, number("commit_p99_us")?);
    let objective_us = number("commit_p99_objective_us")?;
    let percent = number("commit_percentile").unwrap_or(99.0);
    let lasting = number("pages_per_s_lasting").unwrap_or(pages);
    let most = two_digits(lasting, f64::floor).max(LEAST);
    if most >= DEFAULT {
        return None;
    }
    let lasting_words = match lasting < pages {
        true => format!("; but only {} pages/s last", count(lasting)),
        false => found.number(LASTING_RATE, "seen_s").map_or_else(String::new, |seen_s| {
            format!("; no more than {} of writes was seen", seconds(seen_s))
        }),
    };
    let text = format!(
        "No more: at {} pages/s the {percent:.0}th percentile of commits is {} (objective {}), \
         doublewrite included{lasting_words}. It is an upper bound; innodb_io_capacity is to cover \
         what the load dirties (watch measures it).",
        count(pages),
        microseconds(p99_us),
        microseconds(objective_us)
    );
    let undo = format!("SET GLOBAL {SETTING} to the value before");
    let why = [FLUSH_CAPACITY];
    Some(line(SETTING, format!("{most}"), SettingPlace::MyCnf, &why, text, &undo))
}

/// Rounded to two significant digits, down or up: more would pretend a precision that nothing has.
pub(crate) fn two_digits(value: f64, round: fn(f64) -> f64) -> f64 {
    let step = 10.0_f64.powf(value.max(1.0).log10().floor() - 1.0).max(1.0);
    // What is a whole number of steps stays one.
    let steps = value / step;
    let nearest = steps.round();
    let whole = if (steps - nearest).abs() < 1e-9 { nearest } else { round(steps) };
    whole * step
}

#[cfg(test)]
mod tests {
    use iostrata_plan::Layer;
    use iostrata_run::{Finding, FindingKind};

    use super::*;

    fn advised(pages_per_s: f64) -> Option<Advice> {
        let numbers = [
            ("pages_per_s", pages_per_s),
            ("commit_p99_us", 900.0),
            ("commit_p99_objective_us", 1e3),
        ];
        let findings = [Finding {
            id: FLUSH_CAPACITY.to_owned(),
            kind: FindingKind::Sizing,
            text: String::new(),
            layer: Layer::Transactions,
            effect_pct: None,
            effect_pct_ci95: None,
            effect_pct_n: 3,
            evidence: numbers.map(|(name, value)| (name.to_owned(), value.into())).into(),
        }];
        io_capacity_max(&Found { findings: &findings })
    }

    #[test]
    fn storage_that_takes_less_than_servers_ask_for_bounds_them() {
        let advice = advised(400.0).unwrap();
        assert_eq!((advice.setting.as_str(), advice.value.as_str()), (SETTING, "400"));
        assert!(advice.text.contains("upper bound"), "{}", advice.text);
        assert_eq!(advised(2_000.0), None);
        assert_eq!(advised(50_000.0), None);
    }

    #[test]
    fn rounds_to_two_digits() {
        let down = [8_613.0, 4_300.0, 999.9, 7.9, 0.0].map(|value| two_digits(value, f64::floor));
        assert_eq!(down, [8_600.0, 4_300.0, 990.0, 7.0, 0.0]);
        let all = [3.0, 101.0, 612.4, 1_234.0, 19_999.0, 40_000.0];
        let up = all.map(|value| two_digits(value, f64::ceil));
        assert_eq!(up, [3.0, 110.0, 620.0, 1_300.0, 20_000.0, 40_000.0]);
    }
}
