//! Histories by chance: any settings, writes, growth and restarts, and a crash.

use iostrata_engine::page::PageSize;
use iostrata_engine::store::StoreSettings;
use iostrata_innodb::FlushMethod;
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use crate::store::common::{Round, allowed, create, judge, open};

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<u64>),
    Grow(u64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write =
        btree_set(0..30_u64, 1..9).prop_map(|pages| Step::Write(pages.into_iter().collect()));
    let step =
        prop_oneof![6 => write, 1 => (0..60_u64).prop_map(Step::Grow), 1 => Just(Step::Restart)];
    vec(step, 1..9)
}

fn settings() -> impl Strategy<Value = StoreSettings> {
    let method = prop::sample::select(FlushMethod::ALL.to_vec());
    (method, 1..4_u32, 1..6_u32, 1..7_u32).prop_map(|(flush_method, files, extend, pages)| {
        StoreSettings {
            flush_method,
            data_files: files,
            extend_pages: extend,
            doublewrite_pages: pages,
            ..StoreSettings::new(PageSize::MIN)
        }
    })
}

fn play(disk: &TraceDisk, settings: &StoreSettings, steps: &[Step]) -> Vec<Round> {
    let mut rounds = Vec::new();
    let (mut store, _) = open(disk.clone(), settings);
    store.ensure(30).unwrap();
    for (version, step) in (1..).zip(steps) {
        match step {
            Step::Write(pages) => {
                let round = Round::new(version, pages);
                round.write(&store, disk);
                rounds.push(round);
            }
            Step::Grow(pages) => store.ensure(*pages).unwrap(),
            Step::Restart => {
                drop(store);
                store = open(disk.clone(), settings).0;
            }
        }
    }
    rounds
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        if std::env::var_os("IOSTRATA_SOAK").is_some() { 5000 } else { 48 }
    ))]

    #[test]
    fn a_crash_in_any_history_leaves_whole_pages(
        settings in settings(),
        steps in steps(),
        crashes in vec((any::<prop::sample::Index>(), 0..1000_u64), 12),
        sector in prop::sample::select(vec![512, 1024, 4096]),
    ) {
        let memory = MemDisk::new();
        create(memory.clone(), &settings);
        let disk = TraceDisk::new(memory);
        let rounds = play(&disk, &settings, &steps);
        for (at, seed) in crashes {
            let at = at.index(disk.points());
            let allowed = allowed(&rounds, &disk.acknowledged(at));
            let judged = judge(disk.image(at, seed, Tear::Sectors(sector)), &settings, &allowed);
            prop_assert!(judged.is_ok(), "point {}: {:?}", at, judged);
        }
    }
}
