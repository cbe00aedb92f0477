//! Options of jobs and their files.

use super::entry::{FioOption, changes, refused, warned};

pub(super) const ENTRIES: &[FioOption] = &[
    changes("name", "other", "the name the job is reported under, and its files are named by"),
    changes("description", "text", "printed with the job"),
    changes("filename", "a:b", "the files or devices, apart by `:`; all clones share them"),
    changes("directory", "/d:/e", "where files lie; several are taken in turn by clones"),
    changes("filename_format", "$jobname.x.$filenum", "how made files are named"),
    changes("nrfiles", "2", "files of each clone; the size is split among them").or(&["nr_files"]),
    changes(
        "size",
        "64m",
        "bytes of a clone's files, and what it moves unless time_based; with filesize the latter \
         alone; 0: all of what exists",
    ),
    changes("filesize", "64m", "where each file ends; of a range the middle"),
    changes("io_size", "64m", "bytes that a clone moves, if not its size").or(&["io_limit"]),
    changes("number_ios", "3", "requests after which a clone ends"),
    changes("offset", "1m", "first byte used of each file").or(&["fileoffset"]),
    changes(
        "offset_increment",
        "1m;numjobs=2;filename=a",
        "further offset of each next clone, in bytes or %",
    ),
    changes("kb_base", "1000;size=64m", "what k, m and g stand for"),
    changes("file_service_type", "random;nrfiles=2", "which file is next; skewed ones are refused"),
    changes("fallocate", "none;rw=write", "whether files that are only written are allocated"),
    changes("overwrite", "1;rw=write", "files are written before they are measured"),
    changes("create_on_open", "1;rw=write", "files begin empty"),
    changes("invalidate", "0", "whether files leave the page cache before the start"),
    changes("unlink", "1", "made files are removed at the end"),
    warned("unlink_each_loop", "1", "files stay until the job ends; unlink=1 removes them then")
        .but(&["0"]),
    warned("openfiles", "1", "every file stays open"),
    warned("unique_filename", "0", "there are no network clients whose files could collide")
        .but(&["1"]),
    warned("create_serialize", "0", "files are always made one after the other").but(&["1"]),
    warned("create_fsync", "0", "made files are always flushed").but(&["1"]),
    warned("fadvise_hint", "0", "no advice is given on how files are read").but(&["none"]),
    warned("allow_file_create", "0", "files that are missing are made").but(&["1"]),
    changes("opendir", "/d", "the files are those below a directory, however deep"),
    refused("lockfile", "exclusive", "workers take no file locks; leave it out").but(&["none"]),
    changes("fill_device", "1;filename=/dev/x;rw=write", "all of a device or file is used")
        .or(&["fill_fs"])
        .but(&["0"]),
    changes("file_append", "1;filename=there;rw=write", "writes begin where the file ends")
        .but(&["0"])
        .bare(),
    changes(
        "offset_align",
        "64k;offset=10%;filename=/dev/x",
        "what an offset in % is rounded up to",
    )
    .but(&["0"]),
    changes("create_only", "1", "files are made and nothing is measured").but(&["0"]),
    warned("allow_mounted_write", "1", "a mounted device is never written").but(&["0"]),
    changes("pre_read", "1", "files are read into the page cache before the start").but(&["0"]),
    changes("wait_for", "a", "the job begins when the wave of the named one has ended"),
];
