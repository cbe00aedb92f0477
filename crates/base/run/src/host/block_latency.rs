//! Where the time of an I/O request goes: latency by layer, from the kernel's block events.
//!
//! The path of one request, and the segments between its stations:
//! ```text
//! application calls --Filesystem or Limit--> queued --Queue--> issued --Device--> complete
//!                                                       --Completion--> application runs again
//! ```
//! The segments of one request follow each other without gap or overlap, so that the sum of their
//! means is the mean latency of the call, where every call is exactly one device request. Where
//! most requests are the application's own, `Queue` and `Device` cover only these; otherwise
//! (written back from the page cache, issued through libaio) they cover every read or write of the
//! device.

use iostrata_stats::LatencyUs;
use serde::{Deserialize, Serialize};

/// Latency by layer of the requests of one device in a traced window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockLatency {
    /// Length of the traced window, in seconds.
    pub seconds: f64,
    /// Kernel name of the traced device; several are joined by `+`.
    pub device: String,
    /// Reads and writes of the device that were followed from the queue to completion.
    pub requests: u64,
    /// Requests seen in part only: begun before or ended after the window, or with a lost event.
    pub unmatched: u64,
    /// Events that the kernel could not keep, or that could not be read.
    pub lost_events: u64,
    /// Bios that joined the request of a neighbour; they count among the requests.
    pub merged: u64,
    /// Times that the driver handed a request back for lack of room.
    pub requeued: u64,
    /// Requests of the application that were matched to their device requests; `Filesystem`,
    /// `Limit` and `Completion` are known for these only.
    pub calls: u64,
    /// Those of them that an I/O limit held back.
    pub held_back: u64,
    /// From the application down and back up. A segment without samples is left out.
    pub segments: Vec<SegmentLatency>,
    /// What `Queue` is made of. A step without samples is left out.
    pub queue_steps: Vec<QueueStepLatency>,
    /// Cache flushes of the device, from issued to complete. They are neither reads nor writes.
    pub flushes: Option<SegmentTimes>,
    /// Traced calls from call to return.
    pub call_latency: ReadsWrites,
    /// Mean latency that the meter saw in the same window, in microseconds.
    pub application: Option<ApplicationLatency>,
    /// `application` less the mean of every segment, in microseconds: what no segment explains.
    /// Negative where several requests of one call overlap.
    pub unexplained: Option<ApplicationLatency>,
    /// What could not be measured and why; one sentence each.
    pub notes: Vec<String>,
}

/// A part of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PathSegment {
    /// Held back by a control group's I/O limit, above the queue. The kernel reports no event of
    /// its own for that; such a request is known by its bio being queued by a kernel worker (the
    /// limit's dispatcher) while the caller waits. The time is that from the call to the queue,
    /// less the median of `Filesystem` over the calls that were let through; it is 0 for those.
    /// Absent where no call was held back.
    Limit,
    /// From the application's call to its first bio in the device's queue (block_bio_queue):
    /// system call, file system, its locks, reading its own metadata.
    Filesystem,
    /// From the bio in the queue to the request at the driver (block_rq_issue, the last one if the
    /// driver handed it back): waiting for a free request, plugging, merging, scheduler.
    Queue,
    /// From the driver to completion (block_rq_complete). For a loop device this holds everything
    /// below it: its worker, the backing file system and that one's device.
    Device,
    /// From completion of the call's last request to the return of the call; with io_uring to the
    /// posted completion entry, whether or not the application has read it yet. A synchronous write
    /// (`O_DSYNC`) flushes the device in this time.
    Completion,
}

impl PathSegment {
    /// Every segment in the order of the way.
    pub const ALL: [Self; 5] =
        [Self::Limit, Self::Filesystem, Self::Queue, Self::Device, Self::Completion];
}

/// A part of [`PathSegment::Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueStep {
    /// From the queued bio to its request (block_getrq): write-back throttling, and waiting for
    /// one of `nr_requests`.
    Request,
    /// From the request to the scheduler (block_rq_insert): plugging, where neighbours are merged.
    /// Without a scheduler a request is seldom inserted, and the time counts as `Dispatch`.
    Plug,
    /// From the scheduler, or from the request where none was involved, to the driver.
    Dispatch,
}

impl QueueStep {
    /// Every step in the order of the way.
    pub const ALL: [Self; 3] = [Self::Request, Self::Plug, Self::Dispatch];
}

/// How long one segment took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentLatency {
    /// Which one.
    pub segment: PathSegment,
    /// Of reads.
    pub reads: Option<SegmentTimes>,
    /// Of writes.
    pub writes: Option<SegmentTimes>,
}

/// How long one step within the queue took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueStepLatency {
    /// Which one.
    pub step: QueueStep,
    /// Of reads.
    pub reads: Option<SegmentTimes>,
    /// Of writes.
    pub writes: Option<SegmentTimes>,
}

/// Times of reads and of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadsWrites {
    /// Of reads.
    pub reads: Option<SegmentTimes>,
    /// Of writes.
    pub writes: Option<SegmentTimes>,
}

/// A distribution of times and how many it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentTimes {
    /// Times behind it, never 0.
    pub count: u64,
    /// The times, in microseconds.
    pub latency_us: LatencyUs,
}

/// Mean latency of the application's requests, in microseconds. Absent where there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationLatency {
    /// Of reads.
    pub read_us_mean: Option<f64>,
    /// Of writes.
    pub write_us_mean: Option<f64>,
}

impl BlockLatency {
    /// One segment, if anything passed it.
    pub fn segment(&self, segment: PathSegment) -> Option<&SegmentLatency> {
        self.segments.iter().find(|found| found.segment == segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_name_and_travel_as_written() {
        let times = SegmentTimes { count: 3, latency_us: LatencyUs::default() };
        let segment = PathSegment::Queue;
        let queue = SegmentLatency { segment, reads: Some(times), writes: None };
        let found = BlockLatency { segments: vec![queue], ..BlockLatency::default() };
        assert_eq!(found.segment(PathSegment::Queue), Some(&queue));
        assert_eq!(found.segment(PathSegment::Device), None);
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.contains(r#""segment":"queue""#));
        assert_eq!(serde_json::from_str::<BlockLatency>(&text).unwrap(), found);
    }
}
