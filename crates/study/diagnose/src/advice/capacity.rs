//! `innodb_io_capacity` and `innodb_io_capacity_max` from the flush capacity.
//!
//! The measured capacity is the most that may be flushed when it is urgent: `_max`. Half of it is
//! the rate of every day, so that flushing in the background never uses what commits and reads
//! need; InnoDB's own default is the same ratio.

use iostrata_run::{Advice, Risk};
use iostrata_units::{count, microseconds};

use super::{Found, SettingPlace, line};
use crate::finding::FindingId;
use crate::withheld::is_withheld;

/// More than this InnoDB does not use: its page cleaners write about as much on the fastest drives,
/// and a higher limit only makes bursts larger. It is also the default of MySQL 8.4.
const IO_CAPACITY_MAX: f64 = 20_000.0;
/// InnoDB's smallest value.
const IO_CAPACITY_MIN: f64 = 100.0;

pub(super) fn io_capacity(found: &Found<'_>) -> Vec<Advice> {
    if is_withheld(found.findings) {
        return Vec::new();
    }
    let number = |name: &str| found.number(FindingId::FlushCapacity, name);
    let (Some(pages), Some(p99_us), Some(objective_us)) =
        (number("pages_per_s"), number("commit_p99_us"), number("commit_p99_objective_us"))
    else {
        return Vec::new();
    };
    let percent = number("commit_percentile").unwrap_or(99.0);
    let lasting = number("pages_per_s_lasting").unwrap_or(pages);
    let most = two_digits(lasting.min(IO_CAPACITY_MAX)).max(IO_CAPACITY_MIN);
    let usual = two_digits(most / 2.0).max(IO_CAPACITY_MIN);
    let capped = if lasting > IO_CAPACITY_MAX {
        "; InnoDB does not use more than 20000".to_owned()
    } else if lasting < pages {
        format!("; but only {} pages/s last", count(lasting))
    } else {
        String::new()
    };
    let most_text = format!(
        "At {} pages/s the {percent:.0}th percentile of commits is {} (objective {}), doublewrite \
         included{capped}.",
        count(pages),
        microseconds(p99_us),
        microseconds(objective_us)
    );
    let usual_text = "Half of the limit, so that flushing in the background leaves the other half \
                      to commits, reads and bursts."
        .to_owned();
    vec![
        capacity("innodb_io_capacity", usual, usual_text, USUAL_DEFAULTS),
        capacity("innodb_io_capacity_max", most, most_text, MOST_DEFAULTS),
    ]
}

/// Defaults of MySQL before 8.4 and MariaDB, and of MySQL 8.4.
const USUAL_DEFAULTS: [f64; 2] = [200.0, 10_000.0];
const MOST_DEFAULTS: [f64; 2] = [2_000.0, 20_000.0];

/// One of the two, also where it is a default: servers differ in theirs, and which one will read it
/// is not known. More flushing than before wears flash.
fn capacity(name: &str, value: f64, text: String, [least, newest]: [f64; 2]) -> Advice {
    let why = [FindingId::FlushCapacity];
    let undo = format!("SET GLOBAL {name} to the value before");
    let advice = line(name, format!("{value}"), SettingPlace::MyCnf, &why, text, &undo);
    let default = Some(format!("{least}; MySQL 8.4: {newest}"));
    let risk = if value > least { Risk::Wear } else { Risk::None };
    Advice { default, risk, ..advice }
}

/// Rounded down to two significant digits: more would pretend a precision that nothing has.
fn two_digits(value: f64) -> f64 {
    if value < 10.0 {
        return value.floor();
    }
    let step = 10.0_f64.powf(value.log10().floor() - 1.0);
    (value / step + 1e-9).floor() * step
}

#[cfg(test)]
mod tests {
    use iostrata_run::{Finding, FindingKind};
    use iostrata_spec::Layer;

    use super::*;

    #[test]
    fn a_default_of_some_servers_is_advised_for_the_others() {
        let numbers =
            [("pages_per_s", 400.0), ("commit_p99_us", 900.0), ("commit_p99_objective_us", 1e3)];
        let findings = [Finding {
            id: FindingId::FlushCapacity.name().to_owned(),
            kind: FindingKind::Sizing,
            text: String::new(),
            layer: Layer::Transactions,
            effect_pct: None,
            effect_pct_ci95: None,
            effect_pct_n: 3,
            evidence: numbers.map(|(name, value)| (name.to_owned(), value.into())).into(),
        }];
        let advice = io_capacity(&Found { findings: &findings });
        let values: Vec<&str> = advice.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values, ["200", "400"]);
        assert!(advice.iter().all(|one| one.risk == Risk::None));
    }

    #[test]
    fn rounds_down_to_two_digits() {
        assert_eq!(two_digits(8_613.0), 8_600.0);
        assert_eq!(two_digits(4_300.0), 4_300.0);
        assert_eq!(two_digits(999.9), 990.0);
        assert_eq!(two_digits(7.9), 7.0);
        assert_eq!(two_digits(0.0), 0.0);
    }
}
