//! Batches of the real disk, by every kind, against a model in memory.

use std::sync::mpsc;

use iostrata_io::disk::{
    Aligned, Batch, BatchKind, Disk, DiskError, Durability, FileId, FileMode, FileName, RealDisk,
    RealOptions, WriteThrough,
};

use crate::place::directory;

const KINDS: [BatchKind; 3] = [BatchKind::Sync, BatchKind::Libaio, BatchKind::IoUring];
const PAGE: usize = 16384;

/// A stream of numbers that look random.
struct Mix(u64);

impl Mix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

/// Runs `test` with each kind that is granted, buffered and direct.
fn with_each_kind(depth: u32, test: impl Fn(&RealDisk, Durability)) {
    for batch in KINDS {
        for direct in [false, true] {
            for write_through in [WriteThrough::PerWrite, WriteThrough::OpenFlag] {
                let options = RealOptions { direct, write_through, batch, depth, atomic: false };
                let directory = directory();
                let disk = RealDisk::with(directory.path(), options).unwrap();
                let granted = disk.batch_granted();
                if granted.kind != batch {
                    eprintln!("skipped: {batch:?}: {:?}", granted.refused);
                    continue;
                }
                test(&disk, Durability::Volatile);
                test(&disk, Durability::WriteThrough);
            }
        }
    }
}

fn finish(batch: &mut dyn Batch, mut each: impl FnMut(u64, Aligned, Result<(), DiskError>)) {
    while batch.in_flight() > 0 {
        batch.complete(3, &mut |done| each(done.tag, done.buffer, done.result));
    }
}

#[test]
fn contents_are_those_of_a_model() {
    const BLOCKS: usize = 64;
    with_each_kind(8, |disk, durability| {
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        let mut model = vec![0; BLOCKS * 4096];
        disk.set_len(file, 0).unwrap();
        disk.set_len(file, model.len() as u64).unwrap();
        let mut mix = Mix(7);
        let mut batch = disk.batch();
        for round in 0..6u8 {
            let mut at = mix.below(3);
            let mut tag = 0;
            while at < BLOCKS {
                let blocks = (1 + mix.below(4)).min(BLOCKS - at);
                let range = at * 4096..(at + blocks) * 4096;
                model[range.clone()].fill_with(|| round * 31 + mix.below(100) as u8);
                let buffer = Aligned::from_slice(&model[range]);
                batch.write(file, at as u64 * 4096, buffer, durability, tag);
                tag += 1;
                at += blocks + mix.below(3);
            }
            assert_eq!(batch.in_flight(), 0, "taken is not started");
            batch.submit();
            assert_eq!(batch.in_flight(), tag as usize);
            finish(&mut *batch, |_tag, _buffer, result| result.unwrap());
            reads_match(&mut *batch, file, &model);
            let mut all = Aligned::zeroed(model.len());
            disk.read(file, 0, &mut all).unwrap();
            assert!(all[..] == model);
        }
        disk.close(file);
    });
}

fn reads_match(batch: &mut dyn Batch, file: FileId, model: &[u8]) {
    for (number, block) in model.chunks(4096).enumerate() {
        batch.read(file, number as u64 * 4096, Aligned::zeroed(block.len()), number as u64);
    }
    batch.submit();
    let mut seen = vec![0; model.len() / 4096];
    finish(batch, |tag, buffer, result| {
        result.unwrap();
        seen[tag as usize] += 1;
        assert!(buffer[..] == model[tag as usize * 4096..][..4096]);
    });
    assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
}

#[test]
fn each_request_has_its_own_error() {
    with_each_kind(4, |disk, durability| {
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        let direct = disk.facts(file).direct;
        let bytes = if direct { 8192 } else { 8292 };
        disk.set_len(file, bytes).unwrap();
        let mut batch = disk.batch();
        let page = || Aligned::zeroed(4096);
        batch.read(file, 0, page(), 0);
        batch.read(file, 4096, Aligned::zeroed(8192), 1);
        batch.read(file, 1 << 30, page(), 2);
        batch.write(file, 1, page(), durability, 3);
        batch.write(file, 4096, page(), durability, 4);
        batch.write(file, (1 << 62) + 4096, page(), durability, 5);
        batch.submit();
        let mut results = vec![None; 6];
        finish(&mut *batch, |tag, _, result| results[tag as usize] = Some(result));
        let of = |tag: usize| results[tag].as_ref().unwrap();
        assert_eq!((of(0), of(4)), (&Ok(()), &Ok(())));
        for tag in [1, 2] {
            let past = of(tag).as_ref().unwrap_err();
            let expected = if direct || tag == 2 || bytes == 8192 { bytes } else { 8292 };
            let DiskError::PastEnd { file_bytes, .. } = past else { panic!("{past}") };
            assert_eq!(*file_bytes, expected);
        }
        match of(3) {
            Err(DiskError::Unaligned { bytes: 4096, at: 1, .. }) => assert!(direct),
            other => assert!(!direct && other.is_ok(), "{other:?}"),
        }
        assert!(matches!(of(5), Err(DiskError::System { errno: libc::EFBIG, .. })), "{:?}", of(5));
        disk.close(file);
    });
}

#[test]
fn a_dropped_batch_waits_and_leaves_whole_requests() {
    with_each_kind(8, |disk, durability| {
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        disk.set_len(file, 0).unwrap();
        disk.set_len(file, 100 * PAGE as u64).unwrap();
        for round in 1..4u8 {
            let mut batch = disk.batch();
            for tag in 0..100 {
                let page = Aligned::from_slice(&[round; PAGE]);
                batch.write(file, tag * PAGE as u64, page, durability, tag);
            }
            batch.submit();
            batch.complete(usize::from(round), &mut |done| done.result.unwrap());
            drop(batch);
            let mut page = Aligned::zeroed(PAGE);
            for number in 0..100 {
                disk.read(file, number * PAGE as u64, &mut page).unwrap();
                assert!(page.iter().all(|byte| *byte == page[0]) && page[0] <= round);
            }
        }
        disk.close(file);
    });
}

#[test]
fn a_closed_file_lives_as_long_as_its_requests() {
    for kind in [BatchKind::Libaio, BatchKind::IoUring] {
        let directory = directory();
        let options = RealOptions { batch: kind, depth: 2, ..RealOptions::default() };
        let disk = RealDisk::with(directory.path(), options).unwrap();
        if disk.batch_granted().kind != kind {
            eprintln!("skipped: {:?}", disk.batch_granted());
            continue;
        }
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        let mut batch = disk.batch();
        for tag in 0..10 {
            let page = Aligned::from_slice(&[tag as u8 + 1; PAGE]);
            batch.write(file, tag * PAGE as u64, page, Durability::Volatile, tag);
        }
        disk.close(file);
        // A file that gets the number of its descriptor must not be written to.
        let other = disk.open(&name("b"), FileMode::Create).unwrap();
        batch.submit();
        batch.complete(10, &mut |done| done.result.unwrap());
        assert_eq!((batch.in_flight(), disk.len(other)), (0, Ok(0)));
        let file = disk.open(&name("a"), FileMode::Existing).unwrap();
        let mut page = Aligned::zeroed(PAGE);
        disk.read(file, 9 * PAGE as u64, &mut page).unwrap();
        assert_eq!(page[..], [10; PAGE]);
    }
}

#[test]
fn a_batch_goes_from_thread_to_thread() {
    with_each_kind(16, |disk, durability| {
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        let fill = |batch: &mut dyn Batch, round: u8| {
            for tag in 0..40 {
                let page = Aligned::from_slice(&[round + tag as u8; PAGE]);
                batch.write(file, tag * PAGE as u64, page, durability, tag);
            }
            batch.submit();
        };
        let check = |mut batch: Box<dyn Batch>| {
            batch.complete(40, &mut |done| done.result.unwrap());
            assert_eq!(batch.in_flight(), 0);
        };
        std::thread::scope(|scope| {
            // The thread that submitted ends.
            let submit = scope.spawn(|| {
                let mut batch = disk.batch();
                fill(&mut *batch, 1);
                batch
            });
            check(submit.join().unwrap());
            // The thread that submitted computes.
            let (send, receive) = mpsc::channel();
            let (stop, stopped) = mpsc::channel::<()>();
            scope.spawn(move || {
                let mut batch = disk.batch();
                fill(&mut *batch, 2);
                send.send(batch).unwrap();
                while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                    std::hint::spin_loop();
                }
            });
            check(receive.recv().unwrap());
            stop.send(()).unwrap();
        });
        let mut page = Aligned::zeroed(PAGE);
        disk.read(file, 39 * PAGE as u64, &mut page).unwrap();
        assert_eq!(page[..], [41; PAGE]);
        disk.close(file);
    });
}

#[test]
fn many_batches_at_once() {
    with_each_kind(8, |disk, durability| {
        let file = disk.open(&name("a"), FileMode::Create).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6u64 {
                scope.spawn(move || {
                    for round in 0..3u8 {
                        let mut batch = disk.batch();
                        for tag in 0..12 {
                            let page = Aligned::from_slice(&[thread as u8 * 3 + round; 4096]);
                            let at = (thread * 12 + tag) * 4096;
                            batch.write(file, at, page, durability, tag);
                        }
                        batch.submit();
                        batch.complete(12, &mut |done| done.result.unwrap());
                        assert_eq!(batch.in_flight(), 0);
                    }
                });
            }
        });
        let mut all = Aligned::zeroed(72 * 4096);
        disk.read(file, 0, &mut all).unwrap();
        for (number, page) in all.chunks(4096).enumerate() {
            assert!(page.iter().all(|byte| usize::from(*byte) == number / 12 * 3 + 2));
        }
        disk.close(file);
    });
}
