//! Options of requests: what, how large, where to, by which way.

use super::entry::{FioOption, changes, refused, warned};

pub(super) const ENTRIES: &[FioOption] = &[
    changes(
        "rw",
        "randwrite",
        "reads, writes, trims, mix, order, suffix `:N`; of a file trims punch holes",
    )
    .or(&["readwrite"]),
    changes("rw_sequencer", "identical;rw=randread:8", "what the suffix of a random rw repeats"),
    changes("rwmixread", "70;rw=randrw", "reads in a hundred requests"),
    changes("rwmixwrite", "70;rw=randrw", "writes in a hundred requests"),
    changes("bs", "8k,16k", "block size; of reads, writes and trims").or(&["blocksize"]),
    changes("bsrange", "4k-16k", "block sizes between two, each as likely")
        .or(&["blocksize_range"]),
    changes("bssplit", "4k/10:64k/90", "block sizes with a share each"),
    changes("ba", "8k;rw=randread", "what random offsets are multiples of, by direction")
        .or(&["blockalign"]),
    changes("bs_unaligned", "1;bsrange=4k-8k", "sizes of bsrange are any number of bytes")
        .or(&["blocksize_unaligned"])
        .but(&["0"])
        .bare(),
    changes(
        "ioengine",
        "libaio",
        "sync, psync, vsync, pvsync, pvsync2: sync; libaio, io_uring, mmap, null: themselves; aio, \
         linuxaio: libaio; posixaio: sync, or io_uring where it is deep; falloc, ftruncate, \
         filecreate, filestat, filedelete: these calls; all others are refused",
    ),
    changes("iodepth", "8;ioengine=libaio", "requests in flight; sync engines have one"),
    changes(
        "iodepth_batch_complete_min",
        "4;ioengine=libaio;iodepth=8",
        "completions waited for before more requests start",
    )
    .or(&["iodepth_batch_complete"])
    .but(&["0", "1"]),
    changes(
        "iodepth_low",
        "2;ioengine=libaio;iodepth=8",
        "depth down to which a full queue drains",
    ),
    warned(
        "iodepth_batch",
        "4",
        "requests are handed to the kernel as they become due, a sixteenth of the depth at a time",
    )
    .or(&["iodepth_batch_submit"])
    .but(&["1"]),
    warned("iodepth_batch_complete_max", "4", "all completions at hand are always taken"),
    changes("direct", "1", "the page cache is bypassed"),
    changes("buffered", "0", "the opposite of direct"),
    refused("atomic", "1", "the kernel has no O_ATOMIC; use direct=1").but(&["0"]),
    changes("fsync", "8;rw=write", "fsync after so many writes").but(&["0"]),
    changes("fdatasync", "8;rw=write", "fdatasync after so many writes").but(&["0"]),
    changes("sync", "dsync;rw=write", "O_SYNC or O_DSYNC").but(&["0", "none"]),
    warned("write_barrier", "8", "Linux has no barrier writes; use fdatasync=N").but(&["0"]),
    changes(
        "sync_file_range",
        "write:8;rw=write",
        "sync_file_range(2) with wait_before, write and wait_after, every N writes (`:N` at the \
         end), over the range written since the last call; makes nothing durable",
    ),
    changes(
        "random_distribution",
        "zipf:1.2;rw=randread",
        "random, zipf:THETA, pareto:H, normal:DEVIATION, zoned:REQUESTS/SIZE:... or zoned_abs:REQUESTS/BYTES:...",
    ),
    changes("norandommap", "1;rw=randread", "blocks are drawn, instead of each once in a pass")
        .bare(),
    warned("softrandommap", "1", "there is always room for the order of blocks").but(&["0"]),
    refused("bs_is_seq_rand", "1", "block sizes are those of directions; use two jobs").but(&["0"]),
    changes("randseed", "77", "seed of every random choice"),
    changes("randrepeat", "0", "whether the seed is the same each time"),
    warned("allrandrepeat", "1", "one seed rules every choice; see randrepeat").but(&["0"]),
    warned("random_generator", "lfsr", "xoshiro256++ is used").but(&["tausworthe", "tausworthe64"]),
    changes(
        "percentage_random",
        "50;rw=randread",
        "random requests in a hundred, by direction; those between follow the last one",
    )
    .but(&["100"]),
    changes("serialize_overlap", "1", "requests wait for those that they overlap").but(&["0"]),
    warned("io_submit_mode", "offload", "workers submit themselves, never later than is due")
        .but(&["inline"]),
    changes("hipri", "1;ioengine=io_uring;direct=1", "completions are polled for")
        .but(&["0"])
        .bare(),
    warned("fixedbufs", "1", "buffers are always registered").but(&["0"]).bare(),
    warned("registerfiles", "1", "files are always registered").but(&["0"]).bare(),
    warned("nonvectored", "0", "requests have one buffer each").but(&["1"]).bare(),
    warned("userspace_reap", "1", "completions come from the kernel").but(&["0"]).bare(),
    warned("sqthread_poll", "1", "no kernel thread polls the ring: workers submit themselves")
        .but(&["0"])
        .bare(),
    warned("sqthread_poll_cpu", "1", "no kernel thread polls the ring"),
    refused("uncached", "1", "buffered requests use the page cache; use direct=1").but(&["0"]),
    refused("nowait", "1", "requests may wait; leave it out").but(&["0"]),
    warned("force_async", "1", "the kernel decides what waits").but(&["0"]),
    refused("cmd_type", "nvme", "requests are reads and writes; leave it out"),
    refused("sprandom", "1", "writes are not laid out for it; write all twice, by loops=2")
        .but(&["0"]),
    refused("spr_op", "0.1", "it belongs to sprandom, which is not here"),
    refused("spr_num_regions", "9", "it belongs to sprandom, which is not here"),
    refused("spr_cs", "1m", "it belongs to sprandom, which is not here"),
    warned("write_hint", "short", "writes carry no hint").but(&["none"]),
];
