//! The words of each closed set of values: one table that options, help, studies, job files,
//! documents and error messages read.

use crate::study::VolumeKind;
use crate::words::{Word, Words, word};
use crate::{
    FlushCount, FlushScope, IoApi, Memory, Overload, Preparation, RateProcess, Rw, SteadyOf,
    SyncWrites,
};

impl Words for Rw {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Read, "read"),
        word(Self::Write, "write"),
        word(Self::Readwrite, "rw").or(&["readwrite"]),
        word(Self::Randread, "randread"),
        word(Self::Randwrite, "randwrite"),
        word(Self::Randrw, "randrw"),
    ];
}

impl Words for IoApi {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Sync, "sync").or(&["psync", "vsync", "pvsync", "pvsync2"]),
        word(Self::Libaio, "libaio"),
        word(Self::IoUring, "io_uring").or(&["io-uring"]),
        word(Self::Mmap, "mmap"),
        word(Self::Null, "null"),
    ];
}

impl Words for Memory {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Malloc, "malloc")
            .or(&["mmap", "shm", "mmapshared"])
            .help("Pages of the usual size, as databases and fio have them by default"),
        word(Self::MmapHuge, "mmaphuge").or(&["shmhuge"]).help(
            "Huge pages, which need not be reserved: a large request is not split for its memory",
        ),
    ];
}

impl Words for SyncWrites {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::None, "none").help("Nothing"),
        word(Self::Dsync, "dsync").help("The file is opened with O_DSYNC"),
        word(Self::Sync, "sync").help("The file is opened with O_SYNC"),
        word(Self::RwfDsync, "rwf_dsync")
            .or(&["rwf-dsync"])
            .help("RWF_DSYNC on each write instead of a flag on the file"),
    ];
}

impl Words for SteadyOf {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Iops, "iops"),
        word(Self::IopsSlope, "iops_slope"),
        word(Self::Bandwidth, "bw"),
        word(Self::BandwidthSlope, "bw_slope"),
    ];
}

impl Words for FlushScope {
    const WORDS: &'static [Word<Self>] = &[word(Self::File, "file"), word(Self::All, "all")];
}

impl Words for FlushCount {
    const WORDS: &'static [Word<Self>] =
        &[word(Self::Writes, "writes"), word(Self::Requests, "requests")];
}

impl Words for RateProcess {
    const WORDS: &'static [Word<Self>] =
        &[word(Self::Fixed, "fixed").or(&["linear"]), word(Self::Poisson, "poisson")];
}

impl Words for Overload {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Queue, "queue").help("The queue grows without bound"),
        word(Self::Drop, "drop").help("Arrivals that find it full are dropped and counted"),
        word(Self::Abort, "abort").help("The first one that finds it full ends the window"),
    ];
}

impl Words for Preparation {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Written, "written").help("Incompressible data in every block"),
        word(Self::Fallocated, "fallocated").help("Allocated and never written"),
        word(Self::Empty, "empty").help("Nothing: writes extend the file"),
    ];
}

impl Words for VolumeKind {
    const WORDS: &'static [Word<Self>] = &[
        word(Self::Raw, "raw"),
        word(Self::Ext4, "ext4"),
        word(Self::Xfs, "xfs"),
        word(Self::Btrfs, "btrfs"),
        word(Self::Here, "here"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_word_is_one_value<T: Words + std::fmt::Debug>() {
        let mut names: Vec<&str> = Vec::new();
        for word in T::WORDS {
            names.push(word.name);
            names.extend(word.aliases);
            assert_eq!(word.value.name(), word.name);
            for name in std::iter::once(&word.name).chain(word.aliases) {
                assert_eq!(T::of(name), Some(word.value), "{name}");
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }

    #[test]
    fn every_word_leads_to_its_value_and_back() {
        each_word_is_one_value::<Rw>();
        each_word_is_one_value::<IoApi>();
        each_word_is_one_value::<Memory>();
        each_word_is_one_value::<SyncWrites>();
        each_word_is_one_value::<FlushScope>();
        each_word_is_one_value::<FlushCount>();
        each_word_is_one_value::<RateProcess>();
        each_word_is_one_value::<Preparation>();
        each_word_is_one_value::<VolumeKind>();
        assert_eq!((Rw::of("RandRead"), Rw::of("rand-read")), (Some(Rw::Randread), None));
    }
}
