//! The files of a trace instance, as far as they are read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::blocktrace::TraceError;
use crate::blocktrace::ring_buffer::{EventFormat, PageLayout};
use crate::blocktrace::tracepoint::{KNOWN, Known};

/// Clocks that count nanoseconds and agree between processors.
const CLOCKS: [&str; 4] = ["mono", "mono_raw", "boot", "tai"];

/// Bytes asked for at once; larger than any description.
const READ_BYTES: usize = 64 << 10;

/// A prepared instance.
pub(crate) struct Instance {
    dir: PathBuf,
}

/// One processor's part of the buffer.
pub(crate) struct CpuBuffer {
    pub(crate) pages: File,
    path: PathBuf,
    /// Records that were overwritten, and records that were refused.
    pub(crate) overrun: u64,
    pub(crate) dropped: u64,
}

impl Instance {
    /// Looks whether the instance is there, may be read, and counts the right time.
    pub(crate) fn open(dir: &Path) -> Result<Self, TraceError> {
        let instance = Self { dir: dir.to_owned() };
        let clock = match instance.text("trace_clock") {
            Err(TraceError::Unreadable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Err(TraceError::NoInstance { path: dir.to_owned() });
            }
            other => other?,
        };
        let set = clock.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
        if CLOCKS.contains(&set.as_str()) {
            Ok(instance)
        } else {
            Err(TraceError::WrongClock { path: dir.to_owned(), clock: set })
        }
    }

    fn text(&self, file: &str) -> Result<String, TraceError> {
        let path = self.dir.join(file);
        read_text(&path).map_err(|source| TraceError::reading(path, source))
    }

    /// The events that the instance records, with their descriptions.
    pub(crate) fn events(&self) -> Result<Vec<(&'static Known, EventFormat)>, TraceError> {
        let mut found = Vec::new();
        let mut off = Vec::new();
        for known in KNOWN {
            let is_on = self
                .text(&format!("{}/enable", known.directory()))
                .is_ok_and(|text| text.starts_with('1'));
            if is_on {
                let file = format!("{}/format", known.directory());
                let format = EventFormat::parse(&self.text(&file)?)
                    .ok_or_else(|| self.unknown(&file, "its number"))?;
                found.push((known, format));
            } else if known.is_required {
                off.push(known.full_name());
            }
        }
        if off.is_empty() {
            Ok(found)
        } else {
            Err(TraceError::EventsOff { path: self.dir.clone(), events: off })
        }
    }

    /// How pages of the buffer are laid out.
    pub(crate) fn layout(&self) -> Result<PageLayout, TraceError> {
        // Only the top directory describes pages, two levels above an instance. A kernel that
        // gives each instance its own page size describes it there as well.
        let own = self.dir.join("events/header_page");
        let file = if own.exists() { own } else { self.dir.join("../../events/header_page") };
        let text = read_text(&file).map_err(|source| TraceError::reading(file.clone(), source))?;
        let mut layout = PageLayout::parse(&text)
            .map_err(|what| TraceError::UnknownFormat { path: file, what: what.to_owned() })?;
        if let Some(kib) =
            self.text("buffer_subbuf_size_kb").ok().and_then(|t| t.trim().parse().ok())
        {
            layout.page_bytes = layout.page_bytes.max(1024_usize.saturating_mul(kib));
        }
        Ok(layout)
    }

    /// The error of a description that lacks something.
    pub(crate) fn unknown(&self, file: &str, what: &str) -> TraceError {
        TraceError::UnknownFormat { path: self.dir.join(file), what: what.to_owned() }
    }

    /// Every processor's buffer, ready to be read without waiting.
    pub(crate) fn buffers(&self) -> Result<Vec<CpuBuffer>, TraceError> {
        let all = self.dir.join("per_cpu");
        let entries =
            fs::read_dir(&all).map_err(|source| TraceError::reading(all.clone(), source))?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().map(|name| self.buffer(name)).collect()
    }

    fn buffer(&self, cpu: &str) -> Result<CpuBuffer, TraceError> {
        let stats = self.text(&format!("per_cpu/{cpu}/stats"))?;
        let count = |key: &str| {
            let value = stats.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let path = self.dir.join("per_cpu").join(cpu).join("trace_pipe_raw");
        let pages = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(|source| TraceError::reading(path.clone(), source))?;
        let dropped = count("dropped events").saturating_add(count("commit overrun"));
        Ok(CpuBuffer { pages, path, overrun: count("overrun"), dropped })
    }
}

/// Reads a file in large pieces: the kernel hands `header_page` out in one piece only, so that a
/// reader that begins with a few bytes gets no more than those.
fn read_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl CpuBuffer {
    /// Takes the next page out of the buffer; its length, 0 when there is none.
    pub(crate) fn take_page(&mut self, into: &mut [u8]) -> Result<usize, TraceError> {
        loop {
            match self.pages.read(into) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(TraceError::reading(self.path.clone(), error)),
            }
        }
    }
}
