//! What tuning may take: pages per second and per day, and the hours in which it may take nothing.
//!
//! Times are of UTC: what is tuned may be anywhere. Invariant: pages of a day are those that were
//! written while the server was tuned.

use crate::tune::monitor::Vitals;
use crate::tune::need::Rest;

const DAY_S: u64 = 86_400;
const DAY_MIN: u32 = 1_440;

/// What the user allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// Pages per second.
    pub pages_per_s_max: Option<f64>,
    /// Pages per day, while the server is tuned.
    pub pages_per_day_max: Option<f64>,
    /// From which minute of the day to which one nothing is set.
    pub quiet_hours: Vec<(u32, u32)>,
}

impl Budget {
    /// From a text like `22:00-06:00`.
    pub(crate) fn hours(text: &str) -> Option<(u32, u32)> {
        let minute = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':')?;
            let is_two =
                |text: &str| text.len() == 2 && text.bytes().all(|one| one.is_ascii_digit());
            let number = |text: &str| is_two(text).then(|| text.parse::<u32>().ok()).flatten();
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (minutes < 60 && hours * 60 + minutes <= DAY_MIN).then_some(hours * 60 + minutes)
        };
        let (from, to) = text.split_once('-')?;
        let (from, to) = (minute(from)?, minute(to)?);
        (from != to).then_some((from, to))
    }

    /// Until when it is quiet.
    fn quiet_until(&self, utc_s: u64) -> Option<u32> {
        let now = (utc_s % DAY_S / 60) as u32;
        let holds = |(from, to): &&(u32, u32)| match from < to {
            true => (*from..*to).contains(&now),
            false => now >= *from || now < *to,
        };
        self.quiet_hours.iter().find(holds).map(|(_, to)| *to)
    }
}

/// What was taken of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BudgetUse {
    day: u64,
    pages: f64,
}

impl BudgetUse {
    /// Takes in what was written since the last look; `utc_s` are seconds since 1970.
    pub fn take(&mut self, now: &Vitals, utc_s: u64, is_active: bool) {
        let day = utc_s / DAY_S;
        if day != self.day {
            *self = Self { day, pages: 0.0 };
        }
        if is_active {
            self.pages += now.written_per_s * now.dt_s;
        }
    }

    /// Why nothing may be set.
    pub fn rest(&self, budget: &Budget, utc_s: u64) -> Option<Rest> {
        if let Some(until) = budget.quiet_until(utc_s) {
            return Some(Rest::QuietHours(until));
        }
        let most = budget.pages_per_day_max.filter(|most| self.pages >= *most)?;
        Some(Rest::DayIsSpent(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        u64::from(Budget::hours(&format!("{text}-23:59")).unwrap().0) * 60
    }

    #[test]
    fn quiet_hours_may_go_over_midnight() {
        let hours = ["22:00-06:00", "12:30-13:00"].map(|text| Budget::hours(text).unwrap());
        let budget = Budget { quiet_hours: hours.to_vec(), ..Budget::default() };
        let said = |text: &str| BudgetUse::default().rest(&budget, 20_000 * DAY_S + at(text));
        assert_eq!(said("05:59").unwrap().to_string(), "quiet hours until 06:00 UTC");
        assert_eq!((said("06:00"), said("12:29"), said("13:00")), (None, None, None));
        assert!(said("12:30").is_some() && said("22:00").is_some());
        for text in ["", "6:00-7:00", "06:00", "06:00-06:00", "24:01-01:00", "06:60-07:00", "a-b"] {
            assert_eq!(Budget::hours(text), None, "{text}");
        }
        assert_eq!(Budget::hours("18:00-24:00"), Some((1080, 1440)));
    }

    #[test]
    fn pages_of_a_day_are_those_written_while_tuned() {
        let budget = Budget { pages_per_day_max: Some(5_000.0), ..Budget::default() };
        let now = Vitals { written_per_s: 100.0, dt_s: 10.0, ..Vitals::default() };
        let mut spent = BudgetUse::default();
        let mut after = |looks: u32, utc_s: u64, is_active: bool| {
            (0..looks).for_each(|_| spent.take(&now, utc_s, is_active));
            spent.rest(&budget, utc_s)
        };
        assert_eq!(after(100, 10, false), None);
        assert_eq!(after(4, 20, true), None);
        assert_eq!(after(1, 30, true), Some(Rest::DayIsSpent(5_000.0)));
        assert_eq!(after(1, DAY_S - 1, false), Some(Rest::DayIsSpent(5_000.0)));
        assert_eq!(after(1, DAY_S, false), None, "another day");
    }
}
