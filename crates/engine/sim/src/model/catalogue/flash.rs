//! Flash on SATA and NVMe.

use super::{Citation, Model, Origin, Parameter, bandwidth, parameter, share, time};
use crate::drive::flash::{FlashParameters, PAGE_BYTES, WriteCache};

pub(super) fn models() -> Vec<Model> {
    vec![x25_e(), p4500(), evo_970_plus()]
}

/// Where the figures of one drive are from, in the order of [`rows`].
struct Origins {
    queue: Origin,
    dies: Origin,
    read_command: Origin,
    write_command: Origin,
    read_overhead: Origin,
    write_overhead: Origin,
    read_page: Origin,
    program_page: Origin,
    erase: Origin,
    block: Origin,
    link: Origin,
    cache: Origin,
    flush: Origin,
    through: Origin,
    reserve: Origin,
    random_write: Origin,
    sequential_write: Origin,
}

const PER_READ: Origin = Origin::Derived("1 / random reads per second at depth");
const PER_WRITE: Origin = Origin::Derived("1 / random writes per second at depth");
const AS_READ: Origin = Origin::Estimated("as for a read: no source tells them apart");
const REST_OF_READ: Origin =
    Origin::Derived("read latency less command, page and transfer of 4 KiB");
const REST_OF_WRITE: Origin = Origin::Derived("write latency less command and transfer of 4 KiB");
const SEQUENTIAL_READ: Origin = Origin::Derived("the rate of sequential reads");
const CLEANING: Origin = Origin::Derived("what cleaning must cost for the write rates above");
const NVME_QUEUE: Origin = Origin::Estimated("the kernel's queue of an NVMe device, less one");

fn rows(drive: &FlashParameters, from: &Origins) -> Vec<Parameter> {
    let cache = match drive.cache {
        WriteCache::Volatile => "volatile",
        WriteCache::Protected => "protected",
        WriteCache::Off => "off",
    };
    let kib = |pages: u64| pages * u64::from(PAGE_BYTES) / 1024;
    vec![
        parameter("commands at a time", drive.queue_depth, "", from.queue),
        parameter("dies that work at a time", drive.dies, "", from.dies),
        time("controller, per read", drive.read_command_ns, from.read_command),
        time("controller, per write", drive.write_command_ns, from.write_command),
        time("rest of a read's latency", drive.read_overhead_ns, from.read_overhead),
        time("rest of a write's latency", drive.write_overhead_ns, from.write_overhead),
        time("reading 4 KiB", drive.read_page_ns, from.read_page),
        time("programming 4 KiB", drive.program_page_ns, from.program_page),
        time("erasing a block", drive.erase_ns, from.erase),
        parameter("block", kib(drive.block_pages.into()), "KiB", from.block),
        bandwidth("link, reads", drive.link_read_bytes_per_s as f64, from.link),
        bandwidth("link, writes", drive.link_write_bytes_per_s as f64, from.link),
        parameter("write cache", cache, "", from.cache),
        parameter("write cache holds", kib(drive.cache_pages.into()), "KiB", from.cache),
        time("flush, the cache drained", drive.flush_ns, from.flush),
        time("beyond programming, for a forced write", drive.through_ns, from.through),
        parameter("erased in reserve", kib(drive.reserve_pages) / 1024, "MiB", from.reserve),
        parameter(
            "random writes of 4 KiB, reserve used up",
            drive.random_write_iops,
            "1/s",
            from.random_write,
        ),
        bandwidth(
            "sequential writes, reserve used up",
            drive.sequential_write_bytes_per_s,
            from.sequential_write,
        ),
        share("still valid in a cleaned block, random", drive.valid_share_random(), CLEANING),
        share(
            "still valid in a cleaned block, sequential",
            drive.valid_share_sequential(),
            CLEANING,
        ),
    ]
}

fn x25_e() -> Model {
    let from = Origins {
        queue: Origin::Source,
        dies: Origin::Source,
        read_command: PER_READ,
        write_command: AS_READ,
        read_overhead: REST_OF_READ,
        write_overhead: REST_OF_WRITE,
        read_page: Origin::Estimated("array read of single-level cells, 25 us"),
        program_page: Origin::Derived(
            "ten channels at 170 MB/s, less the erase; single-level cells take 200 to 250 us",
        ),
        erase: Origin::Estimated("single-level cells take 1.5 to 2 ms"),
        block: Origin::Estimated("64 pages, as single-level chips of 50 nm had them"),
        link: SEQUENTIAL_READ,
        cache: Origin::Estimated(
            "volatile by the posts. Two of them take the 64 MB chip for it, but draining that at \
             the rate of random writes would take 5 s: most of it is taken to hold tables",
        ),
        flush: Origin::Estimated(
            "50 commits per second with barriers are 20 ms each, for two to four flushes",
        ),
        through: Origin::Estimated(
            "two or three more programs until the tables know; a post has the throughput halved \
             with the cache off",
        ),
        reserve: Origin::Estimated("1 MiB a channel, far less than its spare space of a fifth"),
        random_write: Origin::Source,
        sequential_write: Origin::Source,
    };
    Model {
        name: "ssd-sata",
        real_drive: "Intel X25-E Extreme, 64 GB, SATA 3 Gbit/s, used (written over many times)",
        power_cut: "Done writes since the last flush, up to the write cache; nothing with \
                    `cache=off`",
        parameters: rows(&FlashParameters::x25_e(), &from),
        sources: X25_E_SOURCES,
    }
}

fn p4500() -> Model {
    let from = Origins {
        queue: NVME_QUEUE,
        dies: Origin::Estimated("2 TB of chips of 48 GB (384 Gbit)"),
        read_command: PER_READ,
        write_command: AS_READ,
        read_overhead: REST_OF_READ,
        write_overhead: REST_OF_WRITE,
        read_page: Origin::Estimated("array read of triple-level cells, 60 to 70 us"),
        program_page: Origin::Derived("48 dies at 1.05 GB/s, less the erase"),
        erase: Origin::Estimated("3D cells take 3 to 5 ms"),
        block: Origin::Estimated("4 MiB, the part that is cleaned as one"),
        link: SEQUENTIAL_READ,
        cache: Origin::Estimated("protected by the series' feature list; the size is a guess"),
        flush: Origin::Estimated(
            "enterprise drives answer a sync within 12 to 58 us; with the command it is 20",
        ),
        through: Origin::Derived("nothing: the cache is protected"),
        reserve: Origin::Estimated("half a block a die: a drive in use has no more to spare"),
        random_write: Origin::Source,
        sequential_write: Origin::Source,
    };
    Model {
        name: "nvme",
        real_drive: "Intel SSD DC P4500, 2.0 TB, PCIe 3.0 x4, used (written over many times)",
        power_cut: "Nothing that was done",
        parameters: rows(&FlashParameters::p4500(), &from),
        sources: &[
            Citation {
                title: "Lenovo, Intel P4500 NVMe drives, product guide, table of technical \
                        specifications: random reads 490,000 and random writes 38,000 per second \
                        of 4 KiB, sequential 3.2 and 1.05 GB/s, random latency 85 and 20 us",
                url: Some("http://88.208.23.73:8080/en/manual/lenovo/4xb7a08539/202486?page=3"),
            },
            FSYNC_LATENCY,
        ],
    }
}

fn evo_970_plus() -> Model {
    let from = Origins {
        queue: NVME_QUEUE,
        dies: Origin::Estimated("1 TB of chips of 32 GB (256 Gbit)"),
        read_command: PER_READ,
        write_command: PER_WRITE,
        read_overhead: REST_OF_READ,
        write_overhead: REST_OF_WRITE,
        read_page: Origin::Estimated("what is left of 52.6 us beside a short way"),
        program_page: Origin::Derived("32 dies at 3.3 GB/s, written as single-level cells"),
        erase: Origin::Estimated("3D cells take 3 to 5 ms"),
        block: Origin::Estimated("4 MiB, the part that is cleaned as one"),
        link: SEQUENTIAL_READ,
        cache: Origin::Estimated(
            "volatile, as no client drive of its kind promises otherwise; the size is a guess",
        ),
        flush: Origin::Estimated("client drives take 0.9 to 10 ms for a sync"),
        through: Origin::Estimated("as a flush"),
        reserve: Origin::Source,
        random_write: Origin::Estimated(
            "no source; a few times less than the sequential rate in pages, as for its class",
        ),
        sequential_write: Origin::Source,
    };
    Model {
        name: "nvme-no-plp",
        real_drive: "Samsung 970 EVO Plus, 1 TB, PCIe 3.0 x4, its TurboWrite region empty",
        power_cut: "Done writes since the last flush, up to the write cache; nothing with \
                    `cache=off`",
        parameters: rows(&FlashParameters::evo_970_plus(), &from),
        sources: &[
            Citation {
                title: "Digit, Samsung 970 EVO Plus NVMe M.2 SSD 250 GB review, table of the \
                        series: 1 TB: TurboWrite 6 to 42 GB, sequential 3,500 and 3,300 MB/s, \
                        1,700 MB/s after it, of 4 KiB 19,000 reads and 60,000 writes at depth 1, \
                        600,000 and 550,000 at depth 32 (of several threads)",
                url: Some(
                    "https://digit.in/reviews/general/\
                     samsung-970-evo-plus-nvme-m-2-ssd-250-gb-review-177943.html/amp",
                ),
            },
            FSYNC_LATENCY,
        ],
    }
}

const X25_E_SOURCES: &[Citation] = &[
    Citation {
        title: "Intel X25-E SATA Solid State Drive Product Manual, order number 319984: \
                        random reads 35,000 and random writes 3,300 per second of 4 KiB at a \
                        queue of 32, sequential 250 and 170 MB/s, latency 75 and 85 us (as known; \
                        the manual itself was not found again)",
        url: None,
    },
    Citation {
        title: "The Tech Report, Intel's X25-E Extreme solid-state drive (2008): 250 and \
                        170 MB/s",
        url: Some("http://techreport.com/review/15931/intel-x25-e-extreme-solid-state-drive"),
    },
    Citation {
        title: "Tom's Hardware, 16 Intel X25-Es Do 2.2 GB/s (2009): ten channels",
        url: Some("https://www.tomshardware.com/reviews/x25-e-ssd-performance,2365-2.html"),
    },
    Citation {
        title: "Percona, SSD, XFS, LVM, fsync, write cache, barrier and lost transactions \
                        (2009): 50 commits per second with barriers, 5,300 without, and those lost \
                        at a power cut",
        url: Some(
            "https://www.percona.com/blog/2009/03/02/\
                     ssd-xfs-lvm-fsync-write-cache-barrier-and-lost-transactions/",
        ),
    },
    Citation {
        title: "Guy Harrison, Disabling the Intel X-25 E write cache (2010): a volatile \
                        cache that can be switched off",
        url: Some(
            "http://guyharrison.net/blog/2010/5/11/\
                     disabling-the-intel-x-25-e-write-cache.html",
        ),
    },
    Citation {
        title: "Big DBA Head (2009): 64 MB of volatile cache, throughput cut in half \
                        without it",
        url: Some("http://www.bigdbahead.com/?p=518"),
    },
];

const FSYNC_LATENCY: Citation = Citation {
    title: "Small Datum, SSDs, power loss protection and fsync latency (2026), read as a summary: \
            sync of client drives 0.9 to 10 ms, of enterprise drives 12 to 58 us",
    url: Some(
        "https://engineered.at/articles/ssds-power-loss-protection-and-fsync-latency?comment_sort=new",
    ),
};
