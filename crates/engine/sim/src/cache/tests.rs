//! The rules of write-back, one by one, and what holds for any load.

use iostrata_run::KernelThen::{self, Today, Y2009};
use proptest::prelude::*;

use super::*;
use crate::queue::standin::{Arm, Sent};
use crate::queue::{BlockQueue, QueuePlan, Scheduler};
use iostrata_stats::Random;

const S: u64 = 1_000_000_000;

/// A cache of so many pages above a queue without order and a drive of 1 ms per request.
fn cache(kernel: KernelThen, nr_requests: u32, plan: CachePlan) -> (PageCache, BlockQueue, Sent) {
    let (arm, sent) = Arm::new(1, 1_000_000, 0);
    let queue = QueuePlan { kernel, scheduler: Scheduler::None, nr_requests };
    (PageCache::new(plan), BlockQueue::new(queue, arm), sent)
}

fn plan(kernel: KernelThen) -> CachePlan {
    CachePlan::of(kernel, 5 << 30, 10_000, 0)
}

/// Lets everything up to `until_ns` happen.
fn pass(cache: &mut PageCache, queue: &mut BlockQueue, until_ns: u64) {
    let mut completed = Vec::new();
    loop {
        let events = queue.next_event_ns().into_iter().chain(cache.next_event_ns());
        let now_ns = events.min().unwrap_or(u64::MAX).max(queue.now_ns());
        if now_ns > until_ns {
            return;
        }
        queue.advance(now_ns, &mut completed);
        completed.drain(..).for_each(|one| cache.completed(&one));
        while let Some(who) = queue.wake(now_ns) {
            cache.woken(who);
        }
        cache.run(now_ns, queue);
    }
}

fn dirty(cache: &mut PageCache, queue: &mut BlockQueue, now_ns: u64, pages: &[u32]) {
    for &page in pages {
        assert_eq!(cache.write(now_ns, page, false, queue), Access::Done);
    }
}

fn sent_pages(sent: &Sent) -> Vec<u64> {
    sent.lock().unwrap().iter().map(|one| one.at_bytes / PAGE_BYTES).collect()
}

#[test]
fn limits_are_those_of_the_kernels() {
    let pages = 5 * 1024 * 1024 / 4;
    let then = CachePlan::of(Y2009, 5 << 30, 10, 0);
    assert_eq!((then.dirty_pages_max, then.background_pages), (pages * 2 / 5, pages / 10));
    let now = CachePlan::of(Today, 5 << 30, 10, 0);
    // Between 20 % and half the way between 10 and 20 %: 17.5 %.
    assert_eq!((now.dirty_pages_max, now.background_pages), (pages * 7 / 40, pages / 10));
}

#[test]
fn a_commit_writes_in_the_order_of_dirtying_after_five_seconds() {
    let (mut cache, mut queue, sent) = cache(Y2009, 128, plan(Y2009));
    dirty(&mut cache, &mut queue, S, &[900, 4, 500, 4, 70]);
    pass(&mut cache, &mut queue, 6 * S - 1);
    assert!(sent_pages(&sent).is_empty());
    pass(&mut cache, &mut queue, 7 * S);
    assert_eq!(sent_pages(&sent), [900, 4, 500, 70]);
    assert_eq!(cache.counts().written, 4);
}

#[test]
fn today_the_flusher_writes_by_offset_after_thirty_seconds() {
    let (mut cache, mut queue, sent) = cache(Today, 128, plan(Today));
    dirty(&mut cache, &mut queue, S, &[900, 4, 500, 4, 70]);
    pass(&mut cache, &mut queue, 34 * S);
    assert!(sent_pages(&sent).is_empty(), "the look at 30 s finds them 29 s old");
    pass(&mut cache, &mut queue, 36 * S);
    assert_eq!(sent_pages(&sent), [4, 70, 500, 900]);
}

#[test]
fn today_neighbours_are_one_bio_of_up_to_512_kib() {
    for (kernel, until_ns, has_merges) in [(Today, 36 * S, false), (Y2009, 7 * S, true)] {
        let (mut cache, mut queue, sent) = cache(kernel, 1_024, plan(kernel));
        let pages: Vec<u32> = (5..6).chain(10..14).chain(1_000..1_200).collect();
        dirty(&mut cache, &mut queue, S, &pages);
        pass(&mut cache, &mut queue, until_ns);
        let requests: Vec<_> = sent.lock().unwrap().iter().map(|one| one.bytes / 4096).collect();
        assert_eq!(requests, [1, 4, 128, 72], "{kernel}");
        // Then neighbours came to the queue page by page.
        assert_eq!(queue.counters(queue.now_ns()).write.merges > 0, has_merges, "{kernel}");
    }
}

#[test]
fn more_than_the_background_limit_is_written_at_once() {
    let plan = CachePlan { background_pages: 50, ..plan(Today) };
    let (mut cache, mut queue, _) = cache(Today, 128, plan);
    (0..51).for_each(|page| dirty(&mut cache, &mut queue, S, &[page * 2]));
    cache.run(S, &mut queue);
    assert!(cache.counts().under_write > 0);
    pass(&mut cache, &mut queue, 2 * S);
    assert_eq!(cache.counts().dirty, 0);
}

#[test]
fn a_writer_waits_at_the_limit_until_pages_arrive() {
    let plan = CachePlan { dirty_pages_max: 20, background_pages: 10, ..plan(Today) };
    let (mut cache, mut queue, _) = cache(Today, 128, plan);
    (0..20).for_each(|page| dirty(&mut cache, &mut queue, S, &[page * 2]));
    assert_eq!(cache.write(S, 100, false, &mut queue), Access::Waits(Waits::Limit));
    assert_eq!(cache.write(S, 2, false, &mut queue), Access::Done, "dirty already");
    assert!(!cache.is_over(Waits::Limit));
    cache.run(S, &mut queue);
    pass(&mut cache, &mut queue, 2 * S);
    assert!(cache.is_over(Waits::Limit));
}

#[test]
fn a_page_of_a_commit_is_written_before_it_is_changed() {
    // Four requests of room: most of the commit is not submitted yet.
    let (mut cache, mut queue, sent) = cache(Y2009, 4, plan(Y2009));
    let pages: Vec<u32> = (0..100).map(|page| page * 2).collect();
    dirty(&mut cache, &mut queue, 0, &pages);
    pass(&mut cache, &mut queue, 5 * S);
    // The first is on its way: it may be changed at once, and belongs to the next transaction.
    assert_eq!(cache.write(5 * S, 0, false, &mut queue), Access::Done);
    // The last is not: the writer would have to submit it, and there is no room.
    assert_eq!(cache.write(5 * S, 198, false, &mut queue), Access::Waits(Waits::Wake));
    pass(&mut cache, &mut queue, 5 * S + 50_000_000);
    let waits = cache.write(queue.now_ns(), 190, false, &mut queue);
    assert!(matches!(waits, Access::Waits(_)), "{waits:?}");
    pass(&mut cache, &mut queue, 9 * S);
    assert_eq!(sent_pages(&sent).len(), 100);
    assert_eq!(cache.counts().dirty, 1, "the first, changed again");
    pass(&mut cache, &mut queue, 20 * S);
    assert_eq!(sent_pages(&sent).last(), Some(&0));
}

#[test]
fn what_is_not_in_memory_is_read_and_pushes_the_oldest_clean_page_out() {
    let plan = CachePlan { memory_pages: 100, ..plan(Today) };
    let (mut cache, mut queue, _) = cache(Today, 128, plan);
    dirty(&mut cache, &mut queue, 0, &[0]);
    assert_eq!(cache.write(0, 500, false, &mut queue), Access::Waits(Waits::Read(500)));
    cache.has_read(500);
    dirty(&mut cache, &mut queue, 0, &[500]);
    assert_eq!(cache.pages_in_memory(), 100);
    // 1 was the oldest clean one; 0 is dirty and stays.
    assert_eq!(cache.write(0, 1, false, &mut queue), Access::Waits(Waits::Read(1)));
    dirty(&mut cache, &mut queue, 0, &[0, 2]);
    // A page written whole need not be read.
    assert_eq!(cache.write(0, 700, true, &mut queue), Access::Done);
}

proptest! {
    #[test]
    fn every_dirtied_page_is_written_or_still_dirty(
        seed: u64,
        is_2009: bool,
        nr_requests in 4u32..60,
        dirty_pages_max in 20u32..300,
        writes in 1u32..1500,
    ) {
        let kernel = if is_2009 { Y2009 } else { Today };
        let background_pages = dirty_pages_max / 2;
        let limits = CachePlan { dirty_pages_max, background_pages, ..plan(kernel) };
        let run = || {
            let (mut cache, mut queue, sent) = cache(kernel, nr_requests, limits);
            let (mut random, mut now_ns) = (Random::new(seed), 0);
            for _ in 0..writes {
                now_ns += random.below(30_000_000);
                pass(&mut cache, &mut queue, now_ns);
                let page = random.below(400) as u32;
                while let Access::Waits(waits) = cache.write(now_ns, page, false, &mut queue) {
                    cache.run(now_ns, &mut queue);
                    while !cache.is_over(waits) {
                        // Woken or not, it asks again after the next event.
                        let events = [queue.next_event_ns(), cache.next_event_ns()];
                        now_ns = events.into_iter().flatten().min().unwrap().max(now_ns);
                        pass(&mut cache, &mut queue, now_ns);
                        if waits == Waits::Wake {
                            break;
                        }
                    }
                    if waits == Waits::Wake && queue.held(crate::queue::Direction::Write) > 0 {
                        // The stand-in does not sleep: let the queue run dry instead.
                        while let Some(next_ns) = queue.next_event_ns() {
                            now_ns = now_ns.max(next_ns);
                            pass(&mut cache, &mut queue, now_ns);
                        }
                    }
                }
                let counts = cache.counts();
                assert_eq!(counts.dirtied, counts.submitted + u64::from(counts.dirty));
                assert_eq!(counts.submitted, counts.written + u64::from(counts.under_write));
                assert!(counts.dirty + counts.under_write <= dirty_pages_max);
            }
            pass(&mut cache, &mut queue, now_ns + 300 * S);
            let written = sent.lock().unwrap().iter().map(|one| u64::from(one.bytes)).sum::<u64>();
            (cache.counts(), written / PAGE_BYTES)
        };
        let (counts, written) = run();
        prop_assert_eq!((counts.dirty, counts.under_write), (0, 0));
        prop_assert_eq!(counts.dirtied, counts.written);
        prop_assert_eq!(counts.written, written);
        prop_assert_eq!(run(), (counts, written));
    }
}
