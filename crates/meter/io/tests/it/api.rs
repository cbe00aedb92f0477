//! Every API writes, reads back, flushes and fails alike.

use std::io::Write;

use iostrata_io::{
    ApiConfig, Buffers, FileApi, FileCall, FileSet, FileSpec, IoError, LibaioApi, MmapApi, Op,
    OpKind, OpenFiles, OpenMode, OpenSync, SyncApi, SyncKind, UringApi, WriteThrough,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::place::{directory, plan, prepare};

const BLOCK: u32 = 4096;
const BLOCKS: u64 = 32;

fn set(directory: &std::path::Path) -> FileSet {
    let mut plan = plan(directory, u64::from(BLOCK) * BLOCKS * 2);
    plan.files = 2;
    prepare(&plan).unwrap()
}

fn op(kind: OpKind, file: u32, block: u64, tag: u32) -> Op {
    let len = if kind == OpKind::Sync { 0 } else { BLOCK };
    Op { kind, file, offset: block * u64::from(BLOCK), len, buffer: tag, tag }
}

fn content(block: u64, file: u32) -> Vec<u8> {
    (0..u64::from(BLOCK)).map(|byte| (byte * 31 + block * 7 + u64::from(file)) as u8).collect()
}

/// Runs `ops` at the depth, checks that each completes once and gives the results by tag.
fn run<A: FileApi>(api: &mut A, ops: &[Op]) -> Vec<i32> {
    let mut results = vec![None; ops.len()];
    ops.iter().for_each(|op| api.queue(*op));
    let mut reaped = 0;
    while reaped < ops.len() as u32 {
        reaped += api
            .reap(1, None, |done| {
                let number = ops.iter().position(|op| op.tag == done.tag).unwrap();
                assert_eq!(done.kind, ops[number].kind);
                assert!(results[number].replace(done.result).is_none(), "completed twice");
            })
            .unwrap();
    }
    results.into_iter().map(Option::unwrap).collect()
}

fn writes_are_read_back<A: FileApi>(config: ApiConfig, mode: OpenMode) {
    let directory = directory();
    let set = set(directory.path());
    let mut buffers = Buffers::new(config.depth, BLOCK, 1).unwrap();
    let files = set.open(mode).unwrap();
    let (mut api, _caps) = A::start(&config, &files, &buffers).unwrap();
    let depth = u64::from(config.depth);
    for kind in [OpKind::Write, OpKind::Sync, OpKind::Read] {
        for first in (0..BLOCKS).step_by(config.depth as usize) {
            for file in 0..2 {
                let blocks = first..(first + depth).min(BLOCKS);
                let ops: Vec<Op> =
                    blocks.map(|block| op(kind, file, block, (block - first) as u32)).collect();
                if kind == OpKind::Write {
                    for op in &ops {
                        buffers.copy_in(op.buffer, &content(first + u64::from(op.tag), file));
                    }
                }
                let results = run(&mut api, &ops);
                assert!(results.iter().all(|result| *result == ops[0].len as i32), "{results:?}");
                if kind == OpKind::Read {
                    for op in &ops {
                        let mut found = vec![0; BLOCK as usize];
                        buffers.copy_out(op.buffer, &mut found);
                        assert_eq!(found, content(first + u64::from(op.tag), file));
                    }
                }
            }
        }
    }
}

fn the_end_of_the_file_cuts_a_read_short<A: FileApi>() {
    let directory = directory();
    let path = directory.path().join("short");
    std::fs::write(&path, [9; 6000]).unwrap();
    let spec = FileSpec { path, bytes: 6000 };
    for direct in [false, true] {
        let mode = OpenMode { direct, ..OpenMode::default() };
        let files = OpenFiles::open(std::slice::from_ref(&spec), mode).unwrap();
        let buffers = Buffers::new(1, BLOCK, 1).unwrap();
        let (mut api, _caps) = A::start(&ApiConfig::default(), &files, &buffers).unwrap();
        assert_eq!(run(&mut api, &[op(OpKind::Read, 0, 0, 0)]), [4096]);
        assert_eq!(run(&mut api, &[op(OpKind::Read, 0, 1, 0)]), [6000 - 4096]);
        assert_eq!(run(&mut api, &[op(OpKind::Read, 0, 2, 0)]), [0]);
    }
}

fn a_write_to_a_file_opened_for_reading_fails_alone<A: FileApi>() {
    let directory = directory();
    let set = set(directory.path());
    let files = set.open(OpenMode { direct: true, ..OpenMode::default() }).unwrap();
    let buffers = Buffers::new(1, BLOCK, 1).unwrap();
    let (mut api, _caps) = A::start(&ApiConfig::default(), &files, &buffers).unwrap();
    assert_eq!(run(&mut api, &[op(OpKind::Write, 0, 0, 0)]), [-libc::EBADF]);
    assert_eq!(run(&mut api, &[op(OpKind::Read, 0, 0, 0)]), [4096]);
}

fn every_way_to_sync_works<A: FileApi>(depth: u32) {
    for write_through in [WriteThrough::None, WriteThrough::Dsync, WriteThrough::Sync] {
        for sync_kind in [SyncKind::Fsync, SyncKind::Fdatasync] {
            let config = ApiConfig { depth, sync_kind, write_through, ..ApiConfig::default() };
            let mode = OpenMode { direct: true, write: true, sync: OpenSync::None };
            writes_are_read_back::<A>(config, mode);
        }
    }
    for sync in [OpenSync::Dsync, OpenSync::Sync] {
        let mode = OpenMode { direct: false, write: true, sync };
        writes_are_read_back::<A>(ApiConfig { depth, ..ApiConfig::default() }, mode);
    }
}

/// Of two written blocks one is discarded.
fn a_discarded_block_is_zeroes<A: FileApi>() {
    let directory = directory();
    let set = set(directory.path());
    let mode = OpenMode { direct: true, write: true, sync: OpenSync::None };
    let mut buffers = Buffers::new(1, BLOCK, 1).unwrap();
    let files = set.open(mode).unwrap();
    let (mut api, _caps) = A::start(&ApiConfig::default(), &files, &buffers).unwrap();
    for block in [3, 4] {
        buffers.copy_in(0, &content(block, 1));
        assert_eq!(run(&mut api, &[op(OpKind::Write, 1, block, 0)]), [BLOCK as i32]);
    }
    assert_eq!(run(&mut api, &[op(OpKind::Trim, 1, 3, 0)]), [BLOCK as i32]);
    for (block, expected) in [(3, vec![0; BLOCK as usize]), (4, content(4, 1))] {
        assert_eq!(run(&mut api, &[op(OpKind::Read, 1, block, 0)]), [BLOCK as i32]);
        let mut found = vec![1; BLOCK as usize];
        buffers.copy_out(0, &mut found);
        assert_eq!(found, expected, "block {block}");
    }
}

#[test]
fn sync_does_all_of_it() {
    a_discarded_block_is_zeroes::<SyncApi>();
    every_way_to_sync_works::<SyncApi>(1);
    the_end_of_the_file_cuts_a_read_short::<SyncApi>();
    a_write_to_a_file_opened_for_reading_fails_alone::<SyncApi>();
}

#[test]
fn mapped_files_do_all_of_it() {
    a_discarded_block_is_zeroes::<MmapApi>();
    the_end_of_the_file_cuts_a_read_short::<MmapApi>();
    a_write_to_a_file_opened_for_reading_fails_alone::<MmapApi>();
    for write_through in [WriteThrough::None, WriteThrough::Dsync] {
        let config = ApiConfig { write_through, ..ApiConfig::default() };
        let mode = OpenMode { direct: false, write: true, sync: OpenSync::None };
        writes_are_read_back::<MmapApi>(config, mode);
    }
}

#[test]
fn calls_for_room_and_cuts_move_no_bytes() {
    let directory = directory();
    let set = set(directory.path());
    let buffers = Buffers::new(1, BLOCK, 1).unwrap();
    let mode = OpenMode { write: true, ..OpenMode::default() };
    let files = set.open(mode).unwrap();
    let started = |call| {
        let config = ApiConfig { call: Some(call), ..ApiConfig::default() };
        SyncApi::start(&config, &files, &buffers).unwrap().0
    };
    let bytes = || std::fs::metadata(files.path(0)).unwrap().len();
    let mut cuts = started(FileCall::Truncate);
    assert_eq!(run(&mut cuts, &[op(OpKind::Write, 0, 3, 0)]), [BLOCK as i32]);
    assert_eq!(bytes(), 3 * u64::from(BLOCK));
    assert_eq!(run(&mut cuts, &[op(OpKind::Read, 0, 0, 0)]), [-libc::EINVAL]);
    let mut rooms = started(FileCall::Allocate);
    assert_eq!(run(&mut rooms, &[op(OpKind::Write, 0, 8, 0)]), [BLOCK as i32]);
    assert_eq!(bytes(), 9 * u64::from(BLOCK));
    assert_eq!(run(&mut rooms, &[op(OpKind::Trim, 0, 0, 0)]), [BLOCK as i32]);
    assert_eq!(bytes(), 9 * u64::from(BLOCK), "a hole leaves the size");
}

#[test]
fn sync_has_depth_one() {
    let config = ApiConfig { depth: 2, ..ApiConfig::default() };
    let error = SyncApi::start(&config, &OpenFiles::null(1, 4096), &Buffers::none()).unwrap_err();
    assert!(error.to_string().contains("--iodepth"), "{error}");
}

fn many_in_flight<A: FileApi>(depth: u32) {
    for registered in [true, false] {
        for direct in [true, false] {
            let config = ApiConfig { depth, registered, ..ApiConfig::default() };
            let mode = OpenMode { direct, write: true, sync: OpenSync::None };
            writes_are_read_back::<A>(config, mode);
        }
    }
}

fn reap_waits_as_asked<A: FileApi>() {
    let directory = directory();
    let set = set(directory.path());
    let files = set.open(OpenMode { direct: true, ..OpenMode::default() }).unwrap();
    let buffers = Buffers::new(8, BLOCK, 1).unwrap();
    let config = ApiConfig { depth: 8, ..ApiConfig::default() };
    let (mut api, _caps) = A::start(&config, &files, &buffers).unwrap();
    assert_eq!(api.reap(1, None, |_| panic!("nothing is in flight")).unwrap(), 0);
    (0..8).for_each(|tag| api.queue(op(OpKind::Read, 0, u64::from(tag), tag)));
    assert!(api.submit().unwrap() <= 8);
    assert_eq!(api.reap(8, None, |_| {}).unwrap(), 8);
    assert_eq!(api.reap(8, Some(0), |_| panic!("nothing is in flight")).unwrap(), 0);
    (0..8).for_each(|tag| api.queue(op(OpKind::Read, 0, u64::from(tag), tag)));
    let mut reaped = 0;
    while reaped < 8 {
        reaped += api.reap(8 - reaped, Some(1_000), |_| {}).unwrap();
    }
    // Dropped with requests in flight: the drop must wait for them.
    (0..8).for_each(|tag| api.queue(op(OpKind::Read, 1, u64::from(tag), tag)));
    api.submit().unwrap();
}

fn the_depth_is_held<A: FileApi>() {
    let directory = directory();
    let set = set(directory.path());
    let files = set.open(OpenMode { direct: true, ..OpenMode::default() }).unwrap();
    let buffers = Buffers::new(5, BLOCK, 1).unwrap();
    let config = ApiConfig { depth: 4, ..ApiConfig::default() };
    let (mut api, _caps) = A::start(&config, &files, &buffers).unwrap();
    (0..4).for_each(|tag| api.queue(op(OpKind::Read, 0, 0, tag)));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        api.queue(op(OpKind::Read, 0, 0, 4));
    }));
    assert!(panic.is_err());
}

fn all_of_it<A: FileApi>() {
    a_discarded_block_is_zeroes::<A>();
    many_in_flight::<A>(16);
    every_way_to_sync_works::<A>(8);
    the_end_of_the_file_cuts_a_read_short::<A>();
    a_write_to_a_file_opened_for_reading_fails_alone::<A>();
    reap_waits_as_asked::<A>();
    the_depth_is_held::<A>();
}

#[test]
fn libaio_does_all_of_it() {
    all_of_it::<LibaioApi>();
}

#[test]
fn io_uring_does_all_of_it() {
    let files = OpenFiles::null(0, 0);
    match UringApi::start(&ApiConfig::default(), &files, &Buffers::new(1, BLOCK, 1).unwrap()) {
        Err(IoError::Unavailable { why, .. }) => eprintln!("skipped: no io_uring: {why}"),
        _ => all_of_it::<UringApi>(),
    }
}

#[test]
fn polling_is_refused_with_the_reason() {
    let directory = directory();
    let files = set(directory.path()).open(OpenMode::default()).unwrap();
    let config = ApiConfig { polled: true, ..ApiConfig::default() };
    let buffers = Buffers::new(1, BLOCK, 1).unwrap();
    match UringApi::start(&config, &files, &buffers) {
        Ok((_api, caps)) => {
            assert!(!caps.polled);
            assert!(caps.refused[0].why.contains("--direct"), "{:?}", caps.refused);
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
}

/// A read that does not complete until the pipe is written to.
#[test]
fn io_uring_waits_no_longer_than_asked() {
    let directory = directory();
    let path = directory.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let spec = FileSpec { path: path.clone(), bytes: u64::from(BLOCK) };
    let mode = OpenMode { write: true, ..OpenMode::default() };
    let files = OpenFiles::open(&[spec], mode).unwrap();
    let buffers = Buffers::new(1, BLOCK, 1).unwrap();
    let (mut api, _caps) = match UringApi::start(&ApiConfig::default(), &files, &buffers) {
        Ok(started) => started,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    api.queue(op(OpKind::Read, 0, 0, 0));
    for wait in [0, 1_000_000] {
        assert_eq!(api.reap(1, Some(wait), |_| panic!("nothing was written")).unwrap(), 0);
    }
    assert_eq!(api.reap(0, None, |_| panic!("nothing was written")).unwrap(), 0);
    std::fs::File::options().write(true).open(&path).unwrap().write_all(&[7; 100]).unwrap();
    let mut result = 0;
    assert_eq!(api.reap(1, None, |done| result = done.result).unwrap(), 1);
    assert_eq!(result, 100);
}

/// Runs in a child process that may lock next to no memory.
#[test]
fn a_memlock_limit_is_named_and_survived() {
    const IN_CHILD: &str = "IOSTRATA_TEST_MEMLOCK";
    const NAME: &str = "api::a_memlock_limit_is_named_and_survived";
    if std::env::var_os(IN_CHILD).is_some() {
        return without_locked_memory();
    }
    let limited = std::process::Command::new("setpriv")
        .args(["--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"])
        .args(["prlimit", "--memlock=65536:65536"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(IN_CHILD, "1")
        .output();
    match limited {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            said.lines()
                .filter(|line| line.starts_with("skipped"))
                .for_each(|it| eprintln!("{it}"));
        }
        Ok(output) => eprintln!("skipped: setpriv: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("skipped: setpriv: {error}"),
    }
}

fn without_locked_memory() {
    let directory = directory();
    let set = set(directory.path());
    let files = set.open(OpenMode { direct: true, ..OpenMode::default() }).unwrap();
    let buffers = Buffers::new(64, BLOCK, 1).unwrap();
    let config = ApiConfig { depth: 64, ..ApiConfig::default() };
    match UringApi::start(&config, &files, &buffers) {
        Ok((mut api, caps)) => {
            assert!(!caps.registered_buffers, "{caps:?}");
            assert!(caps.is_memlock_limited, "{caps:?}");
            assert!(caps.refused.iter().any(|it| it.why.contains("65536")), "{caps:?}");
            assert_eq!(run(&mut api, &[op(OpKind::Read, 0, 0, 0)]), [4096]);
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
}
