//! How changes fall on pages: classes of pages that are changed alike.
//!
//! Invariant: the shares of all classes make 1, and their pages the data. Which pages are in the
//! pool is taken from the time that a page stays there unused (Che, Tung and Wang 2002): the same
//! for all pages, and such that the pool is full.

use super::plan::PageAccess;

/// Most classes of a distribution.
pub(super) const CLASSES_MAX: usize = 32;

/// Pages that are changed alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PageClass {
    /// Share of the changes that fall on it.
    pub share: f64,
    /// Pages.
    pub pages: f64,
    /// Share of them that is in the pool.
    pub cached: f64,
}

/// The classes of a distribution over so many pages, of which the pool holds `frames`.
pub(super) fn classes(access: PageAccess, pages: f64, frames: f64) -> Vec<PageClass> {
    let mut classes = match access {
        PageAccess::Uniform => vec![PageClass { share: 1.0, pages, cached: 1.0 }],
        PageAccess::Zipf(power) => by_rank(power, pages),
        PageAccess::HotSet { data_pct, changes_pct } => {
            let (data, share) = (data_pct / 100.0, changes_pct / 100.0);
            vec![
                PageClass { share, pages: pages * data, cached: 1.0 },
                PageClass { share: 1.0 - share, pages: pages * (1.0 - data), cached: 1.0 },
            ]
        }
    };
    if pages > frames {
        settle(&mut classes, frames);
    }
    classes
}

/// Ranks in groups, each a few times as large as the one before.
fn by_rank(power: f64, pages: f64) -> Vec<PageClass> {
    // The weight of the ranks from a to b: the integral over r to the power of minus `power`.
    let weight = |a: f64, b: f64| {
        let left = 1.0 - power;
        if left.abs() < 1e-9 { (b / a).ln() } else { (b.powf(left) - a.powf(left)) / left }
    };
    let groups = CLASSES_MAX - 2;
    let step = (pages + 1.0).powf(1.0 / groups as f64);
    let all = weight(1.0, pages + 1.0);
    let ends = (0..=groups).map(|at| step.powi(at as i32));
    let pairs: Vec<f64> = ends.collect();
    let class = |pair: &[f64]| PageClass {
        share: weight(pair[0], pair[1]) / all,
        pages: pair[1] - pair[0],
        cached: 1.0,
    };
    pairs.windows(2).map(class).collect()
}

/// Finds how long a page stays unused in a full pool, in changes.
fn settle(classes: &mut [PageClass], frames: f64) {
    let cached = |class: &PageClass, stay: f64| 1.0 - (-class.share * stay / class.pages).exp();
    let held =
        |stay: f64| -> f64 { classes.iter().map(|class| class.pages * cached(class, stay)).sum() };
    let (mut low, mut high) = (0.0, 1.0);
    while high < 1e18 && held(high) < frames {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if held(middle) < frames { low = middle } else { high = middle }
    }
    let shares: Vec<f64> = classes.iter().map(|class| cached(class, low)).collect();
    for (class, cached) in classes.iter_mut().zip(shares) {
        class.cached = cached;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_make_a_whole() {
        let hot = PageAccess::HotSet { data_pct: 10.0, changes_pct: 90.0 };
        for access in [PageAccess::Uniform, PageAccess::Zipf(0.9), PageAccess::Zipf(1.0), hot] {
            let all = classes(access, 500_000.0, 1e9);
            let share: f64 = all.iter().map(|class| class.share).sum();
            let pages: f64 = all.iter().map(|class| class.pages).sum();
            assert!((share - 1.0).abs() < 1e-9, "{access:?}: {share}");
            assert!((pages - 500_000.0).abs() < 1.0, "{access:?}: {pages}");
            assert!(all.len() <= CLASSES_MAX);
        }
    }

    #[test]
    fn a_small_pool_is_full_and_holds_what_is_changed_often() {
        let all = classes(PageAccess::Zipf(1.0), 1e6, 1e5);
        let held: f64 = all.iter().map(|class| class.pages * class.cached).sum();
        assert!((held / 1e5 - 1.0).abs() < 1e-6, "{held}");
        assert!(all.windows(2).all(|pair| pair[0].cached >= pair[1].cached));
        let misses: f64 = all.iter().map(|class| class.share * (1.0 - class.cached)).sum();
        assert!((0.05..0.5).contains(&misses), "{misses}");
    }
}
