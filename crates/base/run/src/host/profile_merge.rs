//! Several profiles as one, and the order that makes a profile readable.
//!
//! Invariant: nothing is lost but rows past the limits, and what those held stays in the totals.
//! Pure.

use std::collections::BTreeMap;

use super::{
    FoldedStack, FoldedStackTime, KernelLayer, LayerSamples, LayerShare, LayerTime, OffCpu,
    OffCpuWait, PROFILE_STACKS_MAX, PROFILE_SYMBOLS_MAX, PROFILE_WAITS_MAX, Profile, SymbolShare,
};

impl Profile {
    /// The profiles of several windows of one point as one: samples and seconds are summed. Absent
    /// when there is none. A symbol that one of them did not list counts as it did in that one's
    /// listed stacks.
    pub fn merge<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> Option<Self> {
        let mut profiles = profiles.into_iter();
        let mut merged = profiles.next()?.clone();
        merged.symbols = merged.symbols_of_stacks();
        for other in profiles {
            if other.clock != merged.clock || other.hz != merged.hz {
                let (one, two) = (rate(&merged), rate(other));
                merged.notes.push(format!("profiles at {one} and {two} were merged"));
            }
            merged.add(other);
        }
        Some(merged.ranked())
    }

    /// Keeps the largest `most` stacks, and as many of the waits'; what the others held stays in
    /// the totals.
    pub fn keep_stacks(&mut self, most: usize) {
        let rest = self.stacks.split_off(self.stacks.len().min(most));
        self.stacks_rest_samples += rest.iter().map(|stack| stack.samples).sum::<u64>();
        if let Some(waits) = &mut self.off_cpu {
            let rest = waits.stacks.split_off(waits.stacks.len().min(most));
            waits.stacks_rest_us += rest.iter().map(|stack| stack.total_us).sum::<f64>();
        }
    }

    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.cpus = self.cpus.max(other.cpus);
        self.samples += other.samples;
        self.lost += other.lost;
        self.layers.extend_from_slice(&other.layers);
        self.symbols.extend(other.symbols_of_stacks());
        self.stacks.extend_from_slice(&other.stacks);
        self.stacks_rest_samples += other.stacks_rest_samples;
        match (&mut self.off_cpu, &other.off_cpu) {
            (Some(mine), Some(other)) => mine.add(other),
            (mine @ None, Some(other)) => *mine = Some(other.clone()),
            (_, None) => {}
        }
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    /// The listed symbols, and those past the list that the listed stacks show.
    pub(super) fn symbols_of_stacks(&self) -> Vec<SymbolShare> {
        let mut all = self.symbols.clone();
        let listed: BTreeMap<(&str, &str), ()> = self
            .symbols
            .iter()
            .map(|row| ((row.symbol.as_str(), row.module.as_str()), ()))
            .collect();
        for stack in &self.stacks {
            let Some((symbol, module)) = stack.innermost() else { continue };
            // A program is one frame in every stack; its samples are listed by name.
            if stack.layer == KernelLayer::User || listed.contains_key(&(symbol, module)) {
                continue;
            }
            let (symbol, module) = (symbol.to_owned(), module.to_owned());
            let (layer, samples) = (stack.layer, stack.samples);
            all.push(SymbolShare { symbol, module, layer, samples, pct: 0.0 });
        }
        all
    }

    /// The same profile with equal rows as one, sorted, cut to what a profile lists, and with the
    /// percentages filled in.
    #[must_use]
    pub fn ranked(mut self) -> Self {
        let all = self.samples;
        self.layers = layers(self.layers, all);
        self.symbols = symbols(self.symbols, all);
        let mut stacks: BTreeMap<Vec<String>, FoldedStack> = BTreeMap::new();
        for stack in self.stacks {
            match stacks.get_mut(&stack.frames) {
                Some(same) => same.samples += stack.samples,
                None => drop(stacks.insert(stack.frames.clone(), stack)),
            }
        }
        self.stacks = stacks.into_values().collect();
        self.stacks.sort_by_key(|stack| std::cmp::Reverse(stack.samples));
        let cut = self.stacks.split_off(self.stacks.len().min(PROFILE_STACKS_MAX));
        self.stacks_rest_samples += cut.iter().map(|stack| stack.samples).sum::<u64>();
        self.off_cpu = self.off_cpu.map(OffCpu::ranked);
        self
    }
}

fn rate(profile: &Profile) -> String {
    format!("{} Hz of {}", profile.hz, profile.clock)
}

fn percent(part: f64, all: f64) -> f64 {
    if all > 0.0 { 100.0 * part / all } else { 0.0 }
}

fn layers(rows: Vec<LayerShare>, all: u64) -> Vec<LayerShare> {
    let mut sums: BTreeMap<KernelLayer, (u64, BTreeMap<KernelLayer, u64>)> = BTreeMap::new();
    for row in rows {
        let (samples, taken_in) = sums.entry(row.layer).or_default();
        *samples += row.samples;
        for part in row.taken_in {
            *taken_in.entry(part.layer).or_default() += part.samples;
        }
    }
    let share = |(layer, (samples, taken_in)): (_, (u64, BTreeMap<_, _>))| LayerShare {
        layer,
        samples,
        pct: percent(samples as f64, all as f64),
        taken_in: taken_in
            .into_iter()
            .map(|(layer, samples)| LayerSamples { layer, samples })
            .collect(),
    };
    sums.into_iter().filter(|(_, (samples, _))| *samples > 0).map(share).collect()
}

fn symbols(rows: Vec<SymbolShare>, all: u64) -> Vec<SymbolShare> {
    let mut sums: BTreeMap<(String, String), BTreeMap<KernelLayer, u64>> = BTreeMap::new();
    for row in rows {
        *sums.entry((row.symbol, row.module)).or_default().entry(row.layer).or_default() +=
            row.samples;
    }
    let share = |((symbol, module), by_layer): (_, BTreeMap<KernelLayer, u64>)| {
        let samples = by_layer.values().sum::<u64>();
        let most = by_layer.iter().max_by_key(|(_, samples)| **samples);
        let layer = most.map_or(KernelLayer::Other, |(layer, _)| *layer);
        SymbolShare { symbol, module, layer, samples, pct: percent(samples as f64, all as f64) }
    };
    let mut shares: Vec<SymbolShare> = sums.into_iter().map(share).collect();
    shares.sort_by_key(|row| std::cmp::Reverse(row.samples));
    shares.truncate(PROFILE_SYMBOLS_MAX);
    shares
}

impl OffCpu {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.threads = self.threads.max(other.threads);
        self.count += other.count;
        self.total_us += other.total_us;
        self.lost += other.lost;
        self.unfinished += other.unfinished;
        self.layers.extend_from_slice(&other.layers);
        self.waits.extend_from_slice(&other.waits);
        self.waits_rest_us += other.waits_rest_us;
        self.stacks.extend_from_slice(&other.stacks);
        self.stacks_rest_us += other.stacks_rest_us;
    }

    /// The same with equal rows as one, sorted, cut to what a profile lists, and with means and
    /// percentages filled in.
    #[must_use]
    pub fn ranked(mut self) -> Self {
        let mut layers: BTreeMap<KernelLayer, LayerTime> = BTreeMap::new();
        for row in std::mem::take(&mut self.layers) {
            let empty = LayerTime { layer: row.layer, count: 0, total_us: 0.0, pct: 0.0 };
            let sum = layers.entry(row.layer).or_insert(empty);
            sum.count += row.count;
            sum.total_us += row.total_us;
            sum.pct = percent(sum.total_us, self.total_us);
        }
        self.layers = layers.into_values().filter(|row| row.count > 0).collect();
        self.rank_waits();
        self.rank_stacks();
        self
    }

    fn rank_waits(&mut self) {
        let mut sums: BTreeMap<(String, Option<String>, KernelLayer), OffCpuWait> = BTreeMap::new();
        for row in std::mem::take(&mut self.waits) {
            let key = (row.symbol.clone(), row.caller.clone(), row.layer);
            match sums.get_mut(&key) {
                Some(sum) => {
                    sum.count += row.count;
                    sum.total_us += row.total_us;
                    sum.max_us = sum.max_us.max(row.max_us);
                }
                None => drop(sums.insert(key, row)),
            }
        }
        self.waits = sums.into_values().collect();
        for row in &mut self.waits {
            row.mean_us = if row.count > 0 { row.total_us / row.count as f64 } else { 0.0 };
        }
        self.waits.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
        let cut = self.waits.split_off(self.waits.len().min(PROFILE_WAITS_MAX));
        self.waits_rest_us += cut.iter().map(|row| row.total_us).sum::<f64>();
    }

    fn rank_stacks(&mut self) {
        let mut sums: BTreeMap<(Vec<String>, KernelLayer), FoldedStackTime> = BTreeMap::new();
        for row in std::mem::take(&mut self.stacks) {
            match sums.get_mut(&(row.frames.clone(), row.layer)) {
                Some(sum) => {
                    sum.count += row.count;
                    sum.total_us += row.total_us;
                }
                None => drop(sums.insert((row.frames.clone(), row.layer), row)),
            }
        }
        self.stacks = sums.into_values().collect();
        self.stacks.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
        let cut = self.stacks.split_off(self.stacks.len().min(PROFILE_STACKS_MAX));
        self.stacks_rest_us += cut.iter().map(|row| row.total_us).sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(profile: &mut Profile, symbol: &str, layer: KernelLayer, samples: u64) {
        profile.samples += samples;
        profile.layers.push(LayerShare { layer, samples, pct: 0.0, taken_in: vec![] });
        let frames = vec!["user".to_owned(), symbol.to_owned()];
        profile.stacks.push(FoldedStack { frames, layer, samples });
        let (symbol, module) = (symbol.to_owned(), "[kernel]".to_owned());
        profile.symbols.push(SymbolShare { symbol, module, layer, samples, pct: 0.0 });
    }

    fn wait(symbol: &str, count: u64, total_us: f64, max_us: f64) -> OffCpu {
        let (layer, frames) = (KernelLayer::Device, vec![symbol.to_owned()]);
        OffCpu {
            seconds: 1.0,
            threads: 4,
            count,
            total_us,
            layers: vec![LayerTime { layer, count, total_us, pct: 0.0 }],
            waits: vec![OffCpuWait {
                symbol: symbol.to_owned(),
                caller: None,
                layer,
                taken_in: None,
                count,
                total_us,
                mean_us: 0.0,
                max_us,
            }],
            stacks: vec![FoldedStackTime { frames, layer, count, total_us }],
            ..OffCpu::default()
        }
    }

    fn base() -> Profile {
        Profile {
            hz: 99,
            clock: "cpu-clock".to_owned(),
            seconds: 1.0,
            cpus: 2,
            ..Profile::default()
        }
    }

    #[test]
    fn equal_rows_become_one_and_shares_are_of_all() {
        let (mut one, mut two) = (base(), base());
        row(&mut one, "vfs_write", KernelLayer::Vfs, 30);
        row(&mut one, "do_idle", KernelLayer::Idle, 10);
        row(&mut two, "vfs_write", KernelLayer::Vfs, 50);
        row(&mut two, "blk_mq_get_tag", KernelLayer::Block, 10);
        one.off_cpu = Some(wait("__iomap_dio_rw", 2, 10.0, 7.0));
        two.off_cpu = Some(wait("__iomap_dio_rw", 3, 20.0, 9.0));
        two.notes.push("a note".to_owned());
        let merged = Profile::merge([&one.ranked(), &two.ranked()]).unwrap();
        assert_eq!((merged.samples, merged.seconds, merged.cpus), (100, 2.0, 2));
        let first = &merged.symbols[0];
        assert_eq!((first.symbol.as_str(), first.samples, first.pct), ("vfs_write", 80, 80.0));
        assert_eq!(merged.layers.iter().map(|row| row.samples).sum::<u64>(), 100);
        assert_eq!(merged.stacks[0].samples, 80);
        let off_cpu = merged.off_cpu.unwrap();
        let sum = &off_cpu.waits[0];
        assert_eq!((off_cpu.seconds, off_cpu.threads, off_cpu.count), (2.0, 4, 5));
        assert_eq!((sum.count, sum.total_us, sum.mean_us, sum.max_us), (5, 30.0, 6.0, 9.0));
        assert_eq!(off_cpu.layers[0].pct, 100.0);
        assert_eq!(merged.notes, ["a note"]);
    }

    #[test]
    fn nothing_merges_to_nothing_and_one_to_itself() {
        assert_eq!(Profile::merge([]), None);
        let mut one = base();
        row(&mut one, "vfs_write", KernelLayer::Vfs, 30);
        let one = one.ranked();
        assert_eq!(Profile::merge([&one]), Some(one));
    }

    #[test]
    fn what_is_cut_stays_in_the_totals() {
        let mut many = base();
        for number in 0..PROFILE_STACKS_MAX as u64 + 50 {
            row(&mut many, &format!("function_{number}"), KernelLayer::Other, number + 1);
        }
        let many = many.ranked();
        assert_eq!(many.stacks.len(), PROFILE_STACKS_MAX);
        assert_eq!(many.symbols.len(), PROFILE_SYMBOLS_MAX);
        assert_eq!(many.stacks_rest_samples, (1..=50).sum::<u64>());
        let listed: u64 = many.stacks.iter().map(|stack| stack.samples).sum();
        assert_eq!(listed + many.stacks_rest_samples, many.samples);
        // Twice the same: symbols past the list are still known from the stacks.
        let twice = Profile::merge([&many, &many]).unwrap();
        assert_eq!(twice.symbols[0].samples, 2 * many.symbols[0].samples);
        assert_eq!(twice.stacks_rest_samples, 2 * many.stacks_rest_samples);
    }

    #[test]
    fn profiles_of_different_clocks_say_so() {
        let other = Profile { clock: "cycles".to_owned(), ..base() };
        let merged = Profile::merge([&base(), &other]).unwrap();
        assert_eq!(
            merged.notes,
            ["profiles at 99 Hz of cpu-clock and 99 Hz of cycles were merged"]
        );
    }
}
