//! fio's I/O engines, and the ways to the kernel that stand for them.
//!
//! Invariant: an engine that is not in the table is refused with what to use in its place.

use crate::variation::FileCall;
use crate::{IoApi, Words};

use super::error::Why;
use super::settings::Settings;
use super::value;

/// The equivalent of an engine here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EngineWay {
    Api(IoApi),
    /// Threads of glibc, or of fio's own: a sync engine, or io_uring where it is deep.
    Threads,
    Call(FileCall),
}

/// Engines with what they do, in the order of fio's list.
const ENGINES: [(&str, EngineWay, &str); 16] = {
    use EngineWay::{Api, Call, Threads};
    [
        ("mmap", Api(IoApi::Mmap), "copies to and from a mapped file; flushes are msync"),
        ("sync", Api(IoApi::Sync), "pread and pwrite, one request at a time"),
        ("psync", Api(IoApi::Sync), "the same as sync"),
        ("vsync", Api(IoApi::Sync), "the same as sync"),
        ("pvsync", Api(IoApi::Sync), "the same as sync"),
        ("pvsync2", Api(IoApi::Sync), "the same as sync"),
        ("null", Api(IoApi::Null), "moves nothing and touches no file"),
        ("ftruncate", Call(FileCall::Truncate), "cuts the file at each request's offset"),
        ("filecreate", Call(FileCall::Create), "makes each file, and closes it"),
        ("filestat", Call(FileCall::Stat), "reads the metadata of each file"),
        ("filedelete", Call(FileCall::Delete), "removes each file"),
        ("posixaio", Threads, "the same as sync; io_uring where iodepth is above 1"),
        ("falloc", Call(FileCall::Allocate), "fallocate over each request's bytes"),
        ("io_uring", Api(IoApi::IoUring), "requests through rings that are shared with the kernel"),
        ("libaio", Api(IoApi::Libaio), "io_submit and io_getevents"),
        ("aio", Api(IoApi::Libaio), "the same as libaio"),
    ]
};

/// Every engine that is taken, with what it does.
pub fn engines() -> impl Iterator<Item = (&'static str, &'static str)> {
    ENGINES.into_iter().map(|(name, _, what)| (name, what))
}

fn found(name: &str) -> Option<EngineWay> {
    let known = ENGINES.into_iter().find(|(known, _, _)| *known == name);
    let other_names = || match name {
        "linuxaio" => Some(EngineWay::Api(IoApi::Libaio)),
        name => IoApi::of(name).map(EngineWay::Api),
    };
    known.map(|(_, way, _)| way).or_else(other_names)
}

/// The way to the kernel, and the call that requests are in place of moving bytes. glibc's POSIX
/// requests are threads that read and write, and so are offloaded ones of a sync engine.
pub(super) fn way(settings: &Settings) -> (IoApi, Option<FileCall>) {
    let asked = settings.get("ioengine");
    let name = asked.map_or("sync", |asked| asked.value.as_str());
    let way = found(name);
    let offloads = settings.peek("io_submit_mode").filter(|mode| mode.value == "offload");
    let in_threads = match way {
        Some(EngineWay::Threads) => asked,
        Some(EngineWay::Api(IoApi::Sync) | EngineWay::Call(_)) => offloads,
        _ => None,
    };
    let depth = settings.peek("iodepth").and_then(|one| value::count(&one.value).ok());
    if let Some(assignment) = in_threads
        && depth.is_some_and(|depth| depth > 1)
    {
        settings.note(assignment, "requests go through io_uring, with the same depth");
        return (IoApi::IoUring, None);
    }
    if let (None, Some(assignment)) = (way, asked) {
        settings.refuse(assignment, Why::new(instead(name)));
    }
    match way {
        Some(EngineWay::Api(api)) => (api, None),
        Some(EngineWay::Call(call)) => (IoApi::Sync, Some(call)),
        Some(EngineWay::Threads) | None => (IoApi::Sync, None),
    }
}

/// What to use in place of an engine that is not here.
fn instead(name: &str) -> &'static str {
    match name {
        "splice" | "sg" | "io_uring_cmd" => {
            "this way to the kernel is not measured here; use sync, libaio or io_uring"
        }
        "windowsaio" | "solarisaio" => "it is an engine of another system; use libaio or io_uring",
        _ if name.ends_with(".so") || name.starts_with("external") => {
            "engines of one's own cannot be loaded; use libaio, io_uring or sync"
        }
        _ => "there is no such engine here; use sync, libaio, io_uring, mmap or null",
    }
}
