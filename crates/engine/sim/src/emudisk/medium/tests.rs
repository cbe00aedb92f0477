use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::emudisk::options::Store;

const SECTORS: u64 = 24;
const SIZE: u64 = 1 << 20;
const SECTOR: u64 = 512;

fn medium(volatile_bytes: u64) -> Medium {
    let options = ServeOptions {
        disk: "nvme-no-plp".parse().unwrap(),
        size_bytes: SIZE,
        store: Store::Memory,
        store_limit_bytes: None,
        seed: 5,
        measured: None,
    };
    Medium::new(&options, volatile_bytes).unwrap()
}

fn sectors_of(medium: &Medium) -> Vec<u64> {
    let mut bytes = vec![0; (SECTORS * SECTOR) as usize];
    medium.contents.read(0, &mut bytes).unwrap();
    let value = |sector: &[u8]| u64::from_le_bytes(sector[..8].try_into().unwrap());
    bytes.chunks(SECTOR as usize).map(value).collect()
}

fn data(version: u64, sectors: u64) -> Vec<u8> {
    let one: Vec<u8> = version.to_le_bytes().repeat(SECTOR as usize / 8);
    one.repeat(sectors as usize)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write {
        at: u64,
        sectors: u64,
    },
    /// One of the writes in flight is done.
    Done(prop::sample::Index),
    FlushCame,
    FlushDone(prop::sample::Index),
    Discard {
        at: u64,
        sectors: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0..SECTORS, 1..12_u64).prop_map(|(at, n)| (at, n.min(SECTORS - at)));
    prop_oneof![
        6 => range.clone().prop_map(|(at, sectors)| Step::Write { at, sectors }),
        5 => any::<prop::sample::Index>().prop_map(Step::Done),
        1 => Just(Step::FlushCame),
        1 => any::<prop::sample::Index>().prop_map(Step::FlushDone),
        1 => range.prop_map(|(at, sectors)| Step::Discard { at, sectors }),
    ]
}

/// The plain answer: every write ever, and whether it is in flight, done or safe.
struct Write {
    at: u64,
    sectors: u64,
    version: u64,
    applied: Applied,
    is_done: bool,
    is_safe: bool,
}

#[derive(Default)]
struct Plain {
    writes: Vec<Write>,
    /// Done writes, by index, in the order in which they were done.
    done: Vec<usize>,
    flushes: Vec<(Flushing, usize)>,
}

impl Plain {
    fn overflow(&mut self, limit_bytes: u64) {
        let mut bytes = 0;
        for index in self.done.iter().rev() {
            let write = &mut self.writes[*index];
            bytes += write.sectors * SECTOR;
            // What is safe once is safe for good, and everything done before it is.
            write.is_safe |= bytes > limit_bytes;
        }
    }

    /// Versions that a sector may have after a cut, and which of them only through a tear.
    fn allowed(&self, sector: u64, is_torn: bool) -> BTreeSet<u64> {
        let holds = |write: &&Write| (write.at..write.at + write.sectors).contains(&sector);
        let history: Vec<&Write> = self.writes.iter().filter(holds).collect();
        let safe = history.iter().rposition(|write| write.is_safe);
        let base = safe.map_or(0, |index| history[index].version);
        let later = &history[safe.map_or(0, |index| index + 1)..];
        let may = later.iter().filter(|write| is_torn || !write.is_done);
        may.map(|write| write.version).chain([base]).collect()
    }
}

fn play(medium: &mut Medium, plain: &mut Plain, steps: &[Step], limit_bytes: u64) {
    for step in steps {
        match *step {
            Step::Write { at, sectors } => {
                let version = plain.writes.len() as u64 + 1;
                let applied = medium.write(at * SECTOR, &data(version, sectors)).unwrap();
                let write = Write { at, sectors, version, applied, is_done: false, is_safe: false };
                plain.writes.push(write);
            }
            Step::Done(index) => {
                let in_flight: Vec<usize> =
                    (0..plain.writes.len()).filter(|i| !plain.writes[*i].is_done).collect();
                if !in_flight.is_empty() {
                    let index = *index.get(&in_flight);
                    assert!(medium.done(plain.writes[index].applied));
                    plain.writes[index].is_done = true;
                    plain.done.push(index);
                    plain.overflow(limit_bytes);
                }
            }
            Step::FlushCame => plain.flushes.push((medium.flush().unwrap(), plain.done.len())),
            Step::FlushDone(index) => {
                if !plain.flushes.is_empty() {
                    let (flush, done) = plain.flushes.remove(index.index(plain.flushes.len()));
                    assert!(medium.flushed(flush));
                    for index in &plain.done[..done] {
                        plain.writes[*index].is_safe = true;
                    }
                }
            }
            Step::Discard { at, sectors } => {
                medium.discard(at * SECTOR..(at + sectors) * SECTOR).unwrap();
                // As a write of version 0 that is safe at once.
                let applied = Applied { number: u64::MAX, cut: 0 };
                let write =
                    Write { at, sectors, version: 0, applied, is_done: true, is_safe: true };
                plain.writes.push(write);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_cut_leaves_only_what_may_be_left(
        steps in proptest::collection::vec(step(), 1..60),
        tear in prop_oneof![Just(None), Just(Some(Tear::Sector)), Just(Some(Tear::Block))],
        limit_bytes in prop_oneof![Just(0), Just(8 * SECTOR), Just(1 << 30)],
        seed: u64,
    ) {
        let (mut medium, mut plain) = (medium(limit_bytes), Plain::default());
        play(&mut medium, &mut plain, &steps, limit_bytes);
        medium.cut(tear, Some(seed)).unwrap();
        for (sector, found) in sectors_of(&medium).into_iter().enumerate() {
            let allowed = plain.allowed(sector as u64, tear.is_some());
            prop_assert!(
                allowed.contains(&found),
                "sector {sector} holds version {found}, allowed are {allowed:?}"
            );
        }
        // What is left is beyond the next cut, and numbers of before have no say.
        let left = sectors_of(&medium);
        medium.power_on();
        for write in &plain.writes {
            prop_assert!(!medium.done(write.applied));
        }
        medium.cut(Some(Tear::Sector), None).unwrap();
        prop_assert_eq!(left, sectors_of(&medium));
    }
}

/// Versions that the sectors of two writes end with, over many seeds.
fn outcomes(is_done: bool, tear: Option<Tear>) -> BTreeSet<Vec<u64>> {
    let one = |seed| {
        let mut medium = medium(1 << 30);
        for version in 1..=2 {
            let applied = medium.write(0, &data(version, 16)).unwrap();
            assert!(!is_done || medium.done(applied));
        }
        medium.cut(tear, Some(seed)).unwrap();
        sectors_of(&medium)[..16].to_vec()
    };
    (0..400).map(one).collect()
}

#[test]
fn every_version_of_a_torn_sector_can_be_left() {
    for (is_done, tear) in [(true, Some(Tear::Sector)), (false, None), (false, Some(Tear::Sector))]
    {
        let outcomes = outcomes(is_done, tear);
        assert!(outcomes.len() > 300, "only {} outcomes", outcomes.len());
        for sector in 0..16 {
            let versions: BTreeSet<u64> = outcomes.iter().map(|left| left[sector]).collect();
            assert_eq!(versions, [0, 1, 2].into());
        }
    }
}

#[test]
fn blocks_are_torn_whole() {
    let outcomes = outcomes(true, Some(Tear::Block));
    assert_eq!(outcomes.len(), 9, "two blocks with three versions each");
    for left in outcomes {
        assert!(left[..8].iter().all(|version| *version == left[0]));
        assert!(left[8..].iter().all(|version| *version == left[8]));
    }
}

#[test]
fn without_a_tear_done_writes_are_lost_whole() {
    assert_eq!(outcomes(true, None), [vec![0; 16]].into());
}

#[test]
fn a_disk_without_volatile_cache_loses_nothing_that_was_done() {
    let mut medium = medium(0);
    let older = medium.write(0, &data(1, 1)).unwrap();
    let newer = medium.write(0, &data(2, 1)).unwrap();
    // The older one is still in flight, but was written over by one that is done.
    assert!(medium.done(newer));
    medium.cut(Some(Tear::Sector), Some(1)).unwrap();
    assert_eq!(sectors_of(&medium)[0], 2);
    assert!(!medium.done(older));
    assert_eq!(medium.read(0, &mut [0]), Err(Refused::Broken));
}

#[test]
fn a_refused_write_changes_nothing() {
    let mut medium = medium(1 << 30);
    medium.set_limit(4096);
    let first = medium.write(0, &data(1, 8)).unwrap();
    assert_eq!(medium.write(4096 - 512, &data(2, 2)).unwrap_err(), Refused::Full);
    assert_eq!(sectors_of(&medium)[7], 1);
    assert!(medium.done(first));
    assert_eq!((medium.unflushed_bytes(), medium.store_bytes()), (4096, 4096));
    let flush = medium.flush().unwrap();
    assert!(medium.flushed(flush));
    assert_eq!(medium.unflushed_bytes(), 0);
}
