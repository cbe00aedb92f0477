//! Changes of live settings while others write.
//!
//! Invariant: every live setting of the catalogue is drawn, unless a crash may lose acknowledged
//! commits under some of its values. A value may not go with the other settings; the engine refuses
//! it then.

use iostrata_innodb::{CATALOGUE, Setting, ValueKind, When};
use iostrata_stats::Random;

/// Settings under some of whose values a crash loses what was acknowledged.
const UNSAFE: [&str; 2] = ["flush_log_at_trx_commit", "doublewrite"];
/// Sizes drawn: with fewer bytes of redo the largest rows find no frame, more takes long to make.
const BYTES_MIN: u64 = 1 << 20;
const BYTES_MAX: u64 = 16 << 20;
/// What is drawn of counts goes up to so many times their default, and this much beyond.
const TIMES_DEFAULT: u64 = 4;
const BEYOND: u64 = 100;

/// A live setting and a value for it.
pub fn draw(random: &mut Random) -> (&'static str, String) {
    let live: Vec<&Setting> = drawn().collect();
    let setting = live[random.below(live.len() as u64) as usize];
    (setting.name, value(setting, random))
}

fn drawn() -> impl Iterator<Item = &'static Setting> {
    CATALOGUE.iter().filter(|setting| setting.when == When::Live && !UNSAFE.contains(&setting.name))
}

/// Least, most or default, or one between.
fn value(setting: &Setting, random: &mut Random) -> String {
    let mut between = |min: u64, max: u64| match random.below(3) {
        0 => min,
        1 => max,
        _ => min + random.below(max - min + 1),
    };
    match setting.kind {
        ValueKind::Size { .. } => between(BYTES_MIN, BYTES_MAX).to_string(),
        ValueKind::Count { min, max } => {
            let usual: u64 = setting.default.parse().unwrap_or(min);
            between(min, max.min(usual * TIMES_DEFAULT + BEYOND)).to_string()
        }
        ValueKind::Percent { min, max } => match between(0, 100) {
            0 => min.to_string(),
            share => (min + (max - min) * share as f64 / 100.0).to_string(),
        },
        ValueKind::Switch => ["OFF", "ON"][between(0, 1) as usize].to_owned(),
        ValueKind::Choice(words) => words[between(0, words.len() as u64 - 1) as usize].to_owned(),
        ValueKind::Directory => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use iostrata_innodb::{PolicyName, Settings};

    use super::*;

    #[test]
    fn every_live_setting_takes_all_kinds_of_its_values() {
        let (mut random, mut seen) = (Random::new(1), BTreeMap::<_, BTreeSet<String>>::new());
        let mut refused = 0;
        for _ in 0..20_000 {
            let (name, value) = draw(&mut random);
            let mut settings = Settings::default();
            settings.set(name, &value).unwrap();
            refused += u64::from(settings.check().is_err());
            seen.entry(name).or_default().insert(value);
        }
        assert!(refused < 2_000, "{refused} of 20,000 do not go with the defaults");
        let live = CATALOGUE.iter().filter(|setting| setting.when == When::Live);
        let names: BTreeSet<_> = live.map(|setting| setting.name).collect();
        assert!(UNSAFE.iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(seen.len() + UNSAFE.len(), names.len(), "{names:?}");
        assert_eq!(seen["policy"].len(), PolicyName::ALL.len());
        assert!(seen.values().all(|values| values.len() > 1), "{seen:?}");
    }
}
