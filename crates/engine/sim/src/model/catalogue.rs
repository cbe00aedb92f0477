//! Every model: which real drive it stands for, its parameters, and where they are from.
//!
//! Invariant: a value here is read from the parameters that the model runs with, so that the two
//! can't differ; docs/disks.md is generated from this and held by a test.

use std::time::Duration;

use crate::drive::cloud::CloudParameters;
use crate::drive::flash::{FlashParameters, PAGE_BYTES, WriteCache};
use crate::drive::hdd::{HDD_7K2, HDD_10K, HDD_15K, HddParameters};
use crate::drive::raid::{BATTERY_512M, RAID10_15K};

/// Where a parameter is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It stands in one of the sources.
    Source,
    /// It follows from figures in the sources, as stated.
    Derived(&'static str),
    /// Not published; the reasoning.
    Estimated(&'static str),
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: String,
    /// Of what; empty for a plain word.
    pub unit: &'static str,
    /// Where it is from.
    pub origin: Origin,
}

/// Something that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Its title, and what was taken from it.
    pub title: &'static str,
    /// Where it was found; none for what is known by its title only.
    pub url: Option<&'static str>,
}

/// A model as the documents describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// How a user names it.
    pub name: &'static str,
    /// The drive that it stands for.
    pub real_drive: &'static str,
    /// What a power cut can take.
    pub power_cut: &'static str,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// What was read.
    pub sources: &'static [Citation],
}

/// Every model, in the order of [`DiskModel::NAMED`](iostrata_plan::disk::DiskModel::NAMED), and
/// the measured one last.
pub fn catalogue() -> Vec<Model> {
    let mut models = hdd_models();
    models.push(raid_model());
    models.extend(flash_models());
    models.push(cloud_model());
    models.push(measured_model());
    models
}

fn parameter(
    name: &'static str,
    value: impl ToString,
    unit: &'static str,
    origin: Origin,
) -> Parameter {
    Parameter { name, value: value.to_string(), unit, origin }
}

/// A time in ns as microseconds or milliseconds.
fn time(name: &'static str, ns: u64, origin: Origin) -> Parameter {
    let (value, unit) = match Duration::from_nanos(ns) {
        time if time >= Duration::from_millis(1) => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e3, "us"),
    };
    parameter(name, value, unit, origin)
}

/// A rate in bytes per second as decimal megabytes, as data sheets have it.
fn bandwidth(name: &'static str, bytes_per_s: f64, origin: Origin) -> Parameter {
    parameter(name, (bytes_per_s / 1e5).round() / 10.0, "MB/s", origin)
}

/// A share with three digits.
fn share(name: &'static str, value: f64, origin: Origin) -> Parameter {
    parameter(name, format!("{:.1}", 100.0 * value), "%", origin)
}

const SOURCE: Origin = Origin::Source;

fn cloud_model() -> Model {
    let volume = CloudParameters::gp2();
    let latency = Origin::Estimated(
        "the provider promises single-digit milliseconds; the network and a copy cost about this",
    );
    Model {
        name: "cloud-burst",
        real_drive: "Amazon EBS General Purpose SSD (gp2), its bucket of credits full",
        power_cut: "Nothing",
        parameters: vec![
            parameter(
                "command queue depth",
                volume.queue_depth,
                "",
                Origin::Estimated("enough to reach every rate at its latency"),
            ),
            parameter("baseline per GiB", volume.iops_per_gib, "1/s", SOURCE),
            parameter("least baseline", volume.baseline_iops_min, "1/s", SOURCE),
            parameter("largest baseline", volume.baseline_iops_max, "1/s", SOURCE),
            parameter("rate with credits", volume.burst_iops, "1/s", SOURCE),
            parameter("credits of a full bucket", volume.credits_max, "I/Os", SOURCE),
            parameter("counts as one I/O up to", volume.io_bytes_max / 1024, "KiB", SOURCE),
            parameter(
                "adjacent I/Os are merged from",
                volume.merge_bytes_min / 1024,
                "KiB",
                SOURCE,
            ),
            bandwidth("bandwidth up to 170 GiB", volume.small_bytes_per_s, SOURCE),
            bandwidth("bandwidth of larger volumes", volume.bytes_per_s, SOURCE),
            time("network time of a read, mean", volume.read_ns as u64, latency),
            time("network time of a write, mean", volume.write_ns as u64, latency),
            parameter(
                "its spread (sigma of the logarithm)",
                volume.sigma,
                "",
                Origin::Estimated("a 99th percentile of one and a half times the mean"),
            ),
            time(
                "flush",
                volume.flush_ns,
                Origin::Estimated("nothing to do; a real kernel does not send it"),
            ),
        ],
        sources: &[
            Citation {
                title: "Amazon EC2 User Guide, Amazon EBS volume types (a stored copy): 3 I/Os per \
                        second and GiB, 5.4 million credits, 3,000 per second for 30 minutes",
                url: Some(
                    "https://github.com/siagholami/aws-documentation/tree/main/documents/\
                     amazon-ec2-user-guide/doc_source/ebs-volume-types.md",
                ),
            },
            Citation {
                title: "AWS re:Post, low burst balance: at least 100 and at most 16,000 per second",
                url: Some("https://repost.aws/ja/knowledge-center/rds-low-burst-balance"),
            },
            Citation {
                title: "AWS re:Post, optimal I/O size: I/Os of up to 256 KiB, neighbours of 32 KiB \
                        and more count together, at most 250 MiB/s",
                url: Some("https://repost.aws/es/knowledge-center/ebs-calculate-optimal-io-size"),
            },
            Citation {
                title: "ebscwdash: the lower bandwidth of volumes up to 170 GB",
                url: Some("https://www.github.com/geseib/ebscwdash"),
            },
        ],
    }
}

fn flash_models() -> Vec<Model> {
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
const AS_READ: Origin = Origin::Estimated("as for a read: no source distinguishes them");
const REST_OF_READ: Origin =
    Origin::Derived("read latency less command, page and transfer of 4 KiB");
const REST_OF_WRITE: Origin = Origin::Derived("write latency less command and transfer of 4 KiB");
const SEQUENTIAL_READ: Origin = Origin::Derived("the rate of sequential reads");
const CLEANING: Origin = Origin::Derived("the cost of garbage collection at the write rates above");
const NVME_QUEUE: Origin = Origin::Estimated("the kernel's queue of an NVMe device, less one");

fn flash_rows(drive: &FlashParameters, from: &Origins) -> Vec<Parameter> {
    let cache = match drive.cache {
        WriteCache::Volatile => "volatile",
        WriteCache::Protected => "protected",
        WriteCache::Off => "off",
    };
    let kib = |pages: u64| pages * u64::from(PAGE_BYTES) / 1024;
    vec![
        parameter("command queue depth", drive.queue_depth, "", from.queue),
        parameter("dies in parallel", drive.dies, "", from.dies),
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
        time("flush, with the cache drained", drive.flush_ns, from.flush),
        time("forced write, beyond programming", drive.through_ns, from.through),
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
        share("valid share of a collected block, random", drive.valid_share_random(), CLEANING),
        share(
            "valid share of a collected block, sequential",
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
        power_cut: "Completed writes since the last flush, up to the size of the write cache; \
                    nothing with `cache=off`",
        parameters: flash_rows(&FlashParameters::x25_e(), &from),
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
        block: Origin::Estimated("4 MiB, the unit of garbage collection"),
        link: SEQUENTIAL_READ,
        cache: Origin::Estimated("protected by the series' feature list; the size is a guess"),
        flush: Origin::Estimated(
            "enterprise drives answer a sync within 12 to 58 us; with the command it is 20",
        ),
        through: Origin::Derived("nothing: the cache is protected"),
        reserve: Origin::Estimated("half a block per die: a used drive has no more to spare"),
        random_write: Origin::Source,
        sequential_write: Origin::Source,
    };
    Model {
        name: "nvme",
        real_drive: "Intel SSD DC P4500, 2.0 TB, PCIe 3.0 x4, used (written over many times)",
        power_cut: "Nothing",
        parameters: flash_rows(&FlashParameters::p4500(), &from),
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
        read_page: Origin::Estimated("52.6 us less a short controller path"),
        program_page: Origin::Derived("32 dies at 3.3 GB/s, written as single-level cells"),
        erase: Origin::Estimated("3D cells take 3 to 5 ms"),
        block: Origin::Estimated("4 MiB, the unit of garbage collection"),
        link: SEQUENTIAL_READ,
        cache: Origin::Estimated(
            "volatile, since no client drive of its kind claims otherwise; the size is a guess",
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
        power_cut: "Completed writes since the last flush, up to the size of the write cache; \
                    nothing with `cache=off`",
        parameters: flash_rows(&FlashParameters::evo_970_plus(), &from),
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

const ONE_DISK: &str = "Completed writes since the last flush, up to the size of the write cache; \
                        nothing with `cache=off`";
const SIBLINGS: Origin = Origin::Estimated("as in the manuals of its siblings");

fn hdd_models() -> Vec<Model> {
    vec![
        Model {
            name: "hdd-7k2",
            real_drive: HDD_7K2.name,
            power_cut: ONE_DISK,
            parameters: hdd_rows(&HDD_7K2, Origin::Source),
            sources: &[Citation {
                title: "Seagate, Constellation SAS Product Manual, Rev. E, 100538693, sections 5.1 \
                        and 5.2",
                url: Some(
                    "https://manualsdump.com/en/manuals/\
                     seagate-st9500430ss-st9500432ss-st9500431ss/136786/18",
                ),
            }],
        },
        Model {
            name: "hdd-10k",
            real_drive: HDD_10K.name,
            power_cut: ONE_DISK,
            parameters: hdd_rows(&HDD_10K, Origin::Source),
            sources: &[Citation {
                title: "Seagate, Savvio 10K.4 SAS Product Manual, Rev. A, 100539221, sections 4.1 \
                        and 4.2",
                url: Some("https://manualsdump.com/amp/en/manuals/136758/17"),
            }],
        },
        Model {
            name: "hdd-15k",
            real_drive: HDD_15K.name,
            power_cut: ONE_DISK,
            parameters: hdd_rows(&HDD_15K, SIBLINGS),
            sources: &[Citation {
                title: "Seagate, Savvio 15K.1 FC Product Manual, Rev. B, sections 4.1 and 4.2",
                url: Some("https://manualsdump.com/amp/en/manuals/136737/19"),
            }],
        },
    ]
}

/// The parameters of one disk; `overhead` is where its controller's time is from.
fn hdd_rows(disk: &HddParameters, overhead: Origin) -> Vec<Parameter> {
    let source = Origin::Source;
    let us = |us: u32| u64::from(us) * 1_000;
    let seeks = |seek: crate::drive::hdd::SeekTimes| {
        let ms = |us: u32| f64::from(us) / 1e3;
        let (next, mean, full) = (seek.track_to_track_us, seek.average_us, seek.full_stroke_us);
        format!("{} / {} / {}", ms(next), ms(mean), ms(full))
    };
    vec![
        parameter("rotational speed", disk.turns_per_minute, "1/min", source),
        parameter(
            "seeks before a read: next track, mean, full",
            seeks(disk.seek_read),
            "ms",
            source,
        ),
        parameter("seeks before a write", seeks(disk.seek_write), "ms", source),
        bandwidth("media rate, outer tracks", disk.outer_bytes_per_s as f64, source),
        bandwidth("media rate, inner tracks", disk.inner_bytes_per_s as f64, source),
        bandwidth("interface", disk.interface_bytes_per_s as f64, source),
        time("controller, per command", us(disk.controller_overhead_us), overhead),
        parameter("buffer", disk.cache_bytes >> 10, "KiB", source),
        parameter(
            "ranges in the read cache",
            disk.read_segments,
            "",
            Origin::Estimated("according to manuals, the firmware chooses its segments"),
        ),
        parameter(
            "ranges in the write cache",
            disk.write_cache_entries,
            "",
            Origin::Estimated(
                "calibrated with the one published figure of such disks under small random writes",
            ),
        ),
        parameter(
            "command queue depth",
            disk.queue_depth,
            "",
            Origin::Estimated("limit of the SATA and SAS command sets of the time"),
        ),
        parameter(
            "write cache",
            if disk.write_cache { "on" } else { "off" },
            "",
            Origin::Estimated("the usual setting of such disks"),
        ),
        parameter(
            "flush, at least",
            f64::from(disk.flush_us_min) / 1e3,
            "ms",
            Origin::Estimated("its time is that of the writes"),
        ),
    ]
}

fn measured_model() -> Model {
    let rungs = |names: &'static str| parameter("rungs of the probe", names, "", Origin::Source);
    Model {
        name: "probe:FILE",
        real_drive: "the device under the directory that `iostrata probe --json` measured",
        power_cut: "Completed writes since the last flush if the device reports a write-back cache \
                    (32 MiB are assumed), otherwise nothing",
        parameters: vec![
            rungs("read_4k_depth_N, read_16k_depth_N"),
            rungs("overwrite_16k (depth 1), write_16k_files_8 (8), sustained_16k (32)"),
            rungs("commit_fdatasync (1 thread), commit_fdatasync_4, commit_fdatasync_16"),
            rungs("flush_empty"),
            parameter(
                "command queue depth",
                1024,
                "",
                Origin::Estimated("the rate is constant beyond the deepest rung"),
            ),
        ],
        sources: &[],
    }
}

fn raid_model() -> Model {
    let (array, cache) = (RAID10_15K, BATTERY_512M);
    let of_its_time = Origin::Estimated("as controllers of 2008 to 2012 shipped");
    let firmware = Origin::Estimated("a command through firmware and bus");
    let us = |us: u32| u64::from(us) * 1_000;
    let own_caches = Origin::Derived("data outside the protected cache must be on the medium");
    let mut parameters = vec![
        parameter("disks, in mirrored pairs", array.spindles, "", of_its_time),
        parameter("stripe", array.stripe_bytes >> 10, "KiB", of_its_time),
        parameter("command queue depth", array.queue_depth, "", of_its_time),
        time("controller, per command to a disk", us(array.controller_overhead_us), firmware),
        parameter("protected cache", cache.cache_bytes >> 20, "MiB", of_its_time),
        time("a write into the cache", us(cache.latency_us), firmware),
        time("controller's processor, per command", us(cache.command_us), firmware),
        bandwidth("into and out of the cache", cache.bytes_per_s as f64, of_its_time),
        parameter("write caches of the disks", "off", "", own_caches),
    ];
    parameters.extend(hdd_rows(&array.disk, SIBLINGS).into_iter().filter(|row| {
        // What the array has instead of its disks is listed above.
        !matches!(row.name, "command queue depth" | "flush, at least" | "write cache")
    }));
    Model {
        name: "raid10-hdd",
        real_drive: "eight Seagate Savvio 15K.1 in RAID 10 behind a controller with a battery, no \
                     real controller in particular",
        power_cut: "Nothing; the same with `cache=off`, since the disks' own caches are off",
        parameters,
        sources: &[Citation {
            title: "Seagate, Savvio 15K.1 FC Product Manual, Rev. B, sections 4.1 and 4.2",
            url: Some("https://manualsdump.com/amp/en/manuals/136737/19"),
        }],
    }
}

/// docs/disks.md shows the catalogue and what the models answer. `UPDATE_DOCS=1` writes it again.
#[cfg(test)]
mod documented_tests {
    use std::fmt::Write;
    use std::path::Path;

    use iostrata_plan::disk::{DiskModel, DiskSpec};

    use super::{Model, Origin, catalogue};
    use crate::bench::{BenchOutcome, BenchWindow, Load, run};

    const CAPACITY_BYTES: u64 = 8 << 30;

    /// What stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
    type Part = (&'static str, fn() -> String);

    /// The page's generated parts.
    const PARTS: [Part; 2] = [("figures", figures), ("models", models)];

    fn bench(model: &DiskModel, load: &Load) -> BenchOutcome {
        let spec = DiskSpec::of(model.clone());
        let mut drive = crate::model::drive(&spec, CAPACITY_BYTES, None, 1).unwrap();
        // Long enough for caches to fill, and for thousands of requests of the slowest.
        let window = match model {
            DiskModel::Raid10Hdd => BenchWindow::seconds(20.0, 5.0),
            DiskModel::CloudBurst => BenchWindow::seconds(1.0, 20.0),
            _ if drive.facts().is_rotational => BenchWindow::seconds(20.0, 40.0),
            _ => BenchWindow::seconds(2.0, 0.5),
        };
        run(drive.as_mut(), load, window, 1).unwrap()
    }

    /// Three digits, with thousands apart.
    fn count(value: f64) -> String {
        let step = 10_f64.powi(value.abs().log10().floor() as i32 - 2).max(1.0);
        let whole = ((value / step).round() * step).round() as u64;
        let digits = whole.to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    }

    fn time(us: f64) -> String {
        match us {
            us if us >= 9_995.0 => format!("{:.1} ms", us / 1e3),
            us if us >= 999.5 => format!("{:.2} ms", us / 1e3),
            us if us >= 99.95 => format!("{us:.0} us"),
            us => format!("{us:.1} us"),
        }
    }

    fn figures() -> String {
        let mut text = String::from(
            "| model | reads at depth 1 | 8 | 32 | writes at depth 1 | 8 | 32 | read, mean | \
             read, p99 | \
             flush after a write |\n|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for model in DiskModel::NAMED {
            let mut cells = vec![format!("`{}`", model.name())];
            for load in [Load::random_read, Load::random_write] {
                for depth in [1, 8, 32] {
                    cells.push(count(bench(&model, &load(depth)).iops.value));
                }
            }
            let read = bench(&model, &Load::random_read(1)).read.unwrap().latency_us;
            let committed = Load { flush_every: Some(1), ..Load::random_write(1) };
            let flush = bench(&model, &committed).flush.unwrap().latency_us;
            cells.extend([time(read.mean), time(read.p99), time(flush.mean)]);
            let _never_fails = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    fn models() -> String {
        let mut text = String::new();
        for model in catalogue() {
            describe(&mut text, &model);
        }
        text
    }

    fn describe(text: &mut String, model: &Model) {
        let _never_fails = write!(
            text,
            "\n### {}\nModelled on: {}. Lost in a power cut: {}.\n\n\
             | parameter | value | from |\n|---|---|---|\n",
            model.name,
            model.real_drive,
            lower_first(model.power_cut)
        );
        for row in &model.parameters {
            let from = match row.origin {
                Origin::Source => "source".to_owned(),
                Origin::Derived(how) => format!("derived: {how}"),
                Origin::Estimated(why) => format!("estimated: {why}"),
            };
            let value = format!("{} {}", row.value, row.unit);
            let _never_fails = writeln!(text, "| {} | {} | {from} |", row.name, value.trim_end());
        }
        if !model.sources.is_empty() {
            text.push_str("\nSources:\n");
        }
        for source in model.sources {
            let _never_fails = match source.url {
                Some(url) => writeln!(text, "- {} <{url}>", source.title),
                None => writeln!(text, "- {}", source.title),
            };
        }
    }

    fn lower_first(text: &str) -> String {
        let mut letters = text.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_lowercase().collect::<String>() + letters.as_str()
        })
    }

    #[test]
    fn the_page_shows_every_model_and_what_it_answers() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/disks.md");
        let mut page = std::fs::read_to_string(&path).unwrap();
        let is_update = std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1");
        for (name, part) in PARTS {
            let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
            let (before, rest) = page.split_once(&begin).unwrap();
            let (shown, after) = rest.split_once(&end).unwrap();
            let now = part();
            assert!(
                is_update || shown == now,
                "run UPDATE_DOCS=1 cargo test -p iostrata-sim documented; {name} are now:\n{now}"
            );
            page = format!("{before}{begin}{now}{end}{after}");
        }
        if is_update {
            std::fs::write(&path, page).unwrap();
        }
    }

    #[test]
    fn the_catalogue_describes_every_model_that_has_a_name() {
        let described: Vec<&str> = catalogue().iter().map(|model| model.name).collect();
        let mut named: Vec<&str> = DiskModel::NAMED.iter().map(DiskModel::name).collect();
        named.push("probe:FILE");
        assert_eq!(described, named);
        for model in catalogue() {
            assert!(!model.parameters.is_empty() && !model.real_drive.is_empty(), "{}", model.name);
            let cites = model.parameters.iter().any(|row| row.origin == Origin::Source);
            assert!(!cites || !model.sources.is_empty() || model.name.starts_with("probe"));
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(99.6), count(13_334.0), count(490_193.0)], ["100", "13,300", "490,000"]);
        assert_eq!([time(20.04), time(228.6), time(5_169.65)], ["20.0 us", "229 us", "5.17 ms"]);
    }
}
