//! What a rotating disk is, in the figures of its data sheet, and three disks that were sold.
//!
//! Invariant: a figure without a word of its own stands in the manual that the constant names. What
//! no manual says (entries of the write cache, segments of the read cache, tags of SAS) is said to
//! be an assumption where it is declared.

/// Seek times of a data sheet, settling included and controller overhead not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekTimes {
    /// To the next track, in us.
    pub track_to_track_us: u32,
    /// Mean over pairs of tracks drawn evenly, in us.
    pub average_us: u32,
    /// From the first track to the last, in us.
    pub full_stroke_us: u32,
}

/// A rotating disk. Change a field of a constant for a variant:
/// `HddParameters { queue_depth: 1, ..HDD_15K }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HddParameters {
    /// The disk whose data sheet this is.
    pub name: &'static str,
    /// Its size in bytes as sold. A model may be given another size: it is spread over the whole
    /// stroke, so that latency stays as on the data sheet.
    pub capacity_bytes: u64,
    /// Turns of the platters in a minute.
    pub turns_per_minute: u32,
    /// Seeks before a read.
    pub seek_read: SeekTimes,
    /// Seeks before a write; longer, because the head must settle closer.
    pub seek_write: SeekTimes,
    /// Rate of the medium at the first byte, track switches included.
    pub outer_bytes_per_s: u64,
    /// The same at the last byte.
    pub inner_bytes_per_s: u64,
    /// Rate between host and buffer.
    pub interface_bytes_per_s: u64,
    /// Time of the controller for one command, in us. One command at a time is looked at, while the
    /// arm works on another.
    pub controller_overhead_us: u32,
    /// How much later than after the mean seek time firmware counts on being on the track when it
    /// chooses among commands, in percent of a turn.
    pub choice_margin_turn_pct: u32,
    /// Buffer in bytes: bounds the dirty bytes of the write cache, and is what the read segments
    /// share.
    pub cache_bytes: u64,
    /// Ranges that the read cache keeps.
    pub read_segments: u32,
    /// Ranges that the write cache holds until they are on the medium; adjacent writes make one.
    pub write_cache_entries: u32,
    /// Commands that it considers at a time; 1 is no command queueing.
    pub queue_depth: u32,
    /// Whether writes are done when they are in the cache.
    pub write_cache: bool,
    /// What a flush takes at least, in us.
    pub flush_us_min: u32,
}

/// Segments of the buffer of the disks below. The manuals say that firmware makes and removes them
/// as it sees fit; an assumption.
const SEGMENTS: u32 = 32;

/// Margin of the choice of the disks below. No manual says it. Without one, 32 commands at a time
/// would give 2.7 times the reads of one at a time; published are "nearly 100 %" more for SATA with
/// deep queues, and for Savvio "exceeding 400 IOPS, more than doubling" (IOPS, Wikipedia). With
/// this one the model gives 2.0 times at 32 commands and 2.5 times at 128.
const CHOICE_MARGIN_TURN_PCT: u32 = 15;

/// Ranges in the write cache of the disks below. No manual says it: an assumption, calibrated with
/// the one published figure for two disks of 15,000 turns with the write cache on (see the test
/// `random_writes_into_a_small_index`).
const WRITE_CACHE_ENTRIES: u32 = 64;

/// 16 MiB, the buffer of all three.
const BUFFER_BYTES: u64 = 16 << 20;

/// 7,200 turns: Seagate Constellation ST9500430SS, 500 GB.
///
/// Source: Constellation SAS Product Manual, Rev. E, 100538693, sections 5.1 and 5.2
/// (manualsdump.com/en/manuals/seagate-st9500430ss-st9500432ss-st9500431ss/136786/18,
/// office.manualsonline.com/manuals/mfg/seagate/st9500432ss.html?p=19). The rates are those of
/// "data buffer to/from disc media"; the line "sustained" of that manual (95 to 100 MB/s) lies
/// between. The queue is that of NCQ, which most disks of this speed speak.
pub const HDD_7K2: HddParameters = HddParameters {
    name: "Seagate Constellation ST9500430SS",
    capacity_bytes: 500_107_862_016,
    turns_per_minute: 7_200,
    seek_read: SeekTimes { track_to_track_us: 500, average_us: 8_000, full_stroke_us: 17_350 },
    seek_write: SeekTimes { track_to_track_us: 700, average_us: 8_400, full_stroke_us: 17_820 },
    outer_bytes_per_s: 142_000_000,
    inner_bytes_per_s: 75_000_000,
    interface_bytes_per_s: 600_000_000,
    controller_overhead_us: 200,
    choice_margin_turn_pct: CHOICE_MARGIN_TURN_PCT,
    cache_bytes: BUFFER_BYTES,
    read_segments: SEGMENTS,
    write_cache_entries: WRITE_CACHE_ENTRIES,
    queue_depth: 32,
    write_cache: true,
    flush_us_min: 0,
};

/// 10,000 turns: Seagate Savvio 10K.4 ST9600204SS, 600 GB.
///
/// Source: Savvio 10K.4 SAS Product Manual, Rev. A, 100539221, sections 4.1 and 4.2
/// (manualsdump.com/amp/en/manuals/136758/17 and /18).
pub const HDD_10K: HddParameters = HddParameters {
    name: "Seagate Savvio 10K.4 ST9600204SS",
    capacity_bytes: 600_127_266_816,
    turns_per_minute: 10_000,
    seek_read: SeekTimes { track_to_track_us: 300, average_us: 3_800, full_stroke_us: 7_810 },
    seek_write: SeekTimes { track_to_track_us: 560, average_us: 4_400, full_stroke_us: 8_180 },
    outer_bytes_per_s: 135_000_000,
    inner_bytes_per_s: 72_000_000,
    interface_bytes_per_s: 600_000_000,
    controller_overhead_us: 200,
    choice_margin_turn_pct: CHOICE_MARGIN_TURN_PCT,
    cache_bytes: BUFFER_BYTES,
    read_segments: SEGMENTS,
    write_cache_entries: WRITE_CACHE_ENTRIES,
    queue_depth: 128,
    write_cache: true,
    flush_us_min: 0,
};

/// 15,000 turns: Seagate Savvio 15K.1 ST973451, 73.4 GB.
///
/// Source: Savvio 15K.1 FC Product Manual, Rev. B, sections 4.1 and 4.2
/// (manualsdump.com/amp/en/manuals/136737/19). That table gives seeks without the controller
/// overhead only; the overhead is that of its siblings (Savvio SAS and Savvio 10K.4 SAS: 0.2 ms).
/// The interface is that of the SAS version, 3 Gbit/s.
pub const HDD_15K: HddParameters = HddParameters {
    name: "Seagate Savvio 15K.1 ST973451",
    capacity_bytes: 73_407_868_928,
    turns_per_minute: 15_000,
    seek_read: SeekTimes { track_to_track_us: 200, average_us: 2_600, full_stroke_us: 4_900 },
    seek_write: SeekTimes { track_to_track_us: 400, average_us: 3_100, full_stroke_us: 5_500 },
    outer_bytes_per_s: 89_000_000,
    inner_bytes_per_s: 57_000_000,
    interface_bytes_per_s: 300_000_000,
    controller_overhead_us: 200,
    choice_margin_turn_pct: CHOICE_MARGIN_TURN_PCT,
    cache_bytes: BUFFER_BYTES,
    read_segments: SEGMENTS,
    write_cache_entries: WRITE_CACHE_ENTRIES,
    queue_depth: 128,
    write_cache: true,
    flush_us_min: 0,
};

impl HddParameters {
    /// One turn, in ns.
    pub fn turn_ns(&self) -> f64 {
        60e9 / f64::from(self.turns_per_minute)
    }

    /// What a random read that is alone takes by the data sheet, in ns: overhead, mean seek, half a
    /// turn, and the transfer at the mean rate.
    pub fn random_read_ns(&self, bytes: u32) -> f64 {
        self.random_ns(self.seek_read, bytes)
    }

    /// The same of a write that waits for the medium, in ns.
    pub fn random_write_ns(&self, bytes: u32) -> f64 {
        self.random_ns(self.seek_write, bytes)
    }

    fn random_ns(&self, seek: SeekTimes, bytes: u32) -> f64 {
        let rate = (self.outer_bytes_per_s + self.inner_bytes_per_s) as f64 / 2.0;
        let transfer_ns = f64::from(bytes) / rate * 1e9;
        let arm_ns = f64::from(self.controller_overhead_us + seek.average_us) * 1e3;
        arm_ns + self.turn_ns() / 2.0 + transfer_ns
    }
}
