//! Where a job's files are, what they are called and how much of them is used.
//!
//! Invariant: without a name files are `jobname.clone.file`, each clone with its own; with a name
//! all clones share it. Missing sizes are read from files that exist.

use std::path::{Path, PathBuf};

use iostrata_stats::units::Size;

use super::environment::Environment;
use super::error::{Origin, Why};
use super::iolog::IoLog;
use super::lines::Assignment;
use super::settings::{Settings, job_refusal};
use super::value::{self, Base};

const FILES_MAX: u32 = 65_536;
/// The planned size of a device that does not exist, and of a file of which a share is requested.
const PLANNED_BYTES: u64 = 1 << 40;
const NAME_FORMAT: &str = "$jobname.$jobnum.$filenum";

/// Names of a job's files, by clone; one entry when all clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub by_clone: Vec<Vec<PathBuf>>,
    pub shared: bool,
}

/// The names of the files of `clones` clones of a job; `None` when what names them is refused.
pub(super) fn names(
    settings: &Settings,
    job: &str,
    clones: u32,
    log: Option<&IoLog>,
    (environment, plans_only): (&dyn Environment, bool),
) -> Option<Names> {
    let directories: Vec<PathBuf> = match settings.get("directory") {
        Some(one) => {
            let names = split_names(&one.value);
            if names.is_empty() {
                let why = "name at least one directory, or leave the option out";
                settings.refuse(one, Why::new(why));
                return None;
            }
            let directories: Vec<PathBuf> = names.into_iter().map(PathBuf::from).collect();
            let missing = directories.iter().find(|one| !environment.is_directory(one));
            if let (false, Some(missing)) = (plans_only, missing) {
                let why = format!("there is no directory {}; create it", missing.display());
                settings.refuse(one, Why::new(why));
                return None;
            }
            directories
        }
        None => vec![PathBuf::new()],
    };
    if log.is_none()
        && let Some(assignment) = settings.get("filename")
    {
        let names = split_names(&assignment.value);
        if names.is_empty() || names.iter().any(|name| name == "-") {
            let why = "name files or devices, apart by `:`; standard streams hold no blocks";
            settings.refuse(assignment, Why::new(why));
            return None;
        }
        let paths = names.iter().map(|name| directories[0].join(name)).collect();
        return Some(Names { by_clone: vec![paths], shared: true });
    }
    if let Some(log) = log {
        let paths = match settings.get("replay_redirect") {
            Some(one) => vec![directories[0].join(&one.value)],
            None => log.files.iter().map(|name| directories[0].join(name)).collect(),
        };
        return Some(Names { by_clone: vec![paths], shared: true });
    }
    if let Some(assignment) = settings.get("opendir") {
        let paths = found_below(assignment, environment)
            .map_err(|why| settings.refuse(assignment, Why::new(why)))
            .ok()?;
        return Some(Names { by_clone: vec![paths], shared: true });
    }
    own_names(settings, job, clones, &directories)
}

/// Names made of the job's, for each clone its own.
fn own_names(
    settings: &Settings,
    job: &str,
    clones: u32,
    directories: &[PathBuf],
) -> Option<Names> {
    let files = settings.value("nrfiles", |text| match value::count(text)? {
        files if files == 0 || files.saturating_mul(clones) > FILES_MAX => {
            Err(Why::new(format!("out of range; use 1 to {FILES_MAX} files over all clones")))
        }
        files => Ok(files),
    });
    let files = files.unwrap_or(1);
    // As in fio, a job that is called like a device runs on it.
    if files == 1 && job.starts_with("/dev/") && !job.starts_with("/dev/shm/") {
        return Some(Names { by_clone: vec![vec![PathBuf::from(job)]], shared: true });
    }
    let format = settings.get("filename_format");
    let pattern = format.map_or(NAME_FORMAT, |one| one.value.as_str());
    if let Some(assignment) = format
        && pattern.is_empty()
    {
        let why = "it names nothing; use $jobname, $jobnum and $filenum";
        settings.refuse(assignment, Why::new(why));
        return None;
    }
    let by_clone = (0..clones).map(|clone| {
        let directory = &directories[clone as usize % directories.len()];
        let name = |file| named(pattern, job, clone, file);
        (0..files).map(|file| directory.join(name(file))).collect()
    });
    Some(Names { by_clone: by_clone.collect(), shared: false })
}

/// The files that are below a directory.
fn found_below(asked: &Assignment, environment: &dyn Environment) -> Result<Vec<PathBuf>, String> {
    let directory = Path::new(&asked.value);
    let paths = environment.files_below(directory).map_err(|why| format!("{why}; create it"))?;
    match paths.len() {
        0 => Err("there is no file below it; make some".to_owned()),
        files if files > FILES_MAX as usize => {
            Err(format!("there are {files} files below it; use at most {FILES_MAX}"))
        }
        _ => Ok(paths),
    }
}

fn named(pattern: &str, job: &str, clone: u32, file: u32) -> String {
    // A name is no path: a job called a/b has its files next to the others.
    let job = job.replace('/', "_");
    pattern
        .replace("$jobname", &job)
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &file.to_string())
        // As in fio, without a client there is nothing in its place.
        .replace("$clientuid", "")
}

/// Names apart by `:`; `\:` is a colon in a name.
fn split_names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut escaped = false;
    for letter in text.chars() {
        let last = names.last_mut();
        match (letter, last) {
            ('\\', _) if !escaped => escaped = true,
            (':', _) if !escaped => names.push(String::new()),
            (letter, Some(name)) => {
                if escaped && letter != ':' {
                    name.push('\\');
                }
                name.push(letter);
                escaped = false;
            }
            (_, None) => {}
        }
    }
    names.retain(|name| !name.trim().is_empty());
    names.into_iter().map(|name| name.trim().to_owned()).collect()
}

/// How much of each file is used, and how much is moved, by one clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    /// First byte used of each file.
    pub offset_bytes: u64,
    /// Bytes used of each file from there.
    pub file_bytes: u64,
    /// Bytes that a clone moves before it ends.
    pub io_bytes: u64,
}

#[derive(Clone, Copy)]
enum PlaceOption {
    Bytes(u64),
    Percent(f64),
}

fn asked(text: &str, base: Base) -> Result<PlaceOption, Why> {
    match text.trim().strip_suffix('%') {
        None => value::size(text, base).map(PlaceOption::Bytes),
        Some(percent) => match value::decimal(percent.trim_end_matches('%'))? {
            percent if (0.0..=100.0).contains(&percent) => Ok(PlaceOption::Percent(percent)),
            _ => Err(Why::new("it is a share; use 1% to 100%")),
        },
    }
}

/// The sizes that a job gives for the files of its clones.
pub(super) struct Amounts<'a> {
    settings: &'a Settings,
    job: (&'a str, &'a Origin),
    environment: &'a dyn Environment,
    /// Whether a device that is not there counts as one of [`PLANNED_BYTES`].
    plans_only: bool,
    /// The smallest block, and the mean of all, in bytes.
    block: (u64, f64),
}

impl<'a> Amounts<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        job: (&'a str, &'a Origin),
        (environment, plans_only): (&'a dyn Environment, bool),
        (least, mean): (u32, f64),
    ) -> Self {
        Self { settings, job, environment, plans_only, block: (u64::from(least), mean) }
    }

    /// What clone `clone` uses of its files; `None` when that is refused.
    pub(super) fn of(&self, clone: u32, paths: &[PathBuf]) -> Option<Amount> {
        let settings = self.settings;
        let base = settings.base();
        let files = paths.len() as u64;
        let read = |text: &str| asked(text, base);
        let size = settings.value("size", read);
        let each = settings.value("filesize", |text| one_size(text, base));
        let is_wrong = |name, found: bool| settings.peek(name).is_some() && !found;
        if is_wrong("size", size.is_some()) || is_wrong("filesize", each.is_some()) {
            return None;
        }
        let offset_bytes = self.offset(clone, paths, base)?;
        // As in fio, 0 means unset.
        let size = size.filter(|size| !matches!(size, PlaceOption::Bytes(0)));
        let fills = settings.switch("fill_device").unwrap_or(false) && self.there(paths)?.is_some();
        let size = size.filter(|_| !fills);
        let each = each.filter(|each| !fills && *each > 0);
        let file_bytes = match (each, size) {
            (Some(each), size) => self.within(each, size, offset_bytes)?,
            (None, Some(PlaceOption::Bytes(bytes))) if clone == 0 => bytes / files,
            (None, Some(PlaceOption::Bytes(bytes))) => {
                // A further clone may begin near the end of what is there.
                let left = self.there(paths)?.map(|whole| whole.saturating_sub(offset_bytes));
                left.filter(|left| *left > 0).map_or(bytes / files, |left| left.min(bytes / files))
            }
            (None, Some(PlaceOption::Percent(percent))) => {
                let whole = self.whole("size", paths)?;
                self.share(percent, whole).min(whole.saturating_sub(offset_bytes))
            }
            (None, None) => self.rest(paths, offset_bytes)?,
        };
        let all = (file_bytes / self.block.0 * self.block.0).saturating_mul(files);
        let all = match (each, size) {
            // As in fio, files of a size of their own need not be gone over whole.
            (Some(_), Some(PlaceOption::Bytes(bytes))) => {
                all.min(bytes / self.block.0 * self.block.0)
            }
            _ => all,
        };
        let moved = settings.value("io_size", read).map(|moved| match moved {
            PlaceOption::Bytes(bytes) => bytes,
            PlaceOption::Percent(percent) => self.share(percent, all),
        });
        let counted = settings.value("number_ios", |text| value::size(text, Base::FIO));
        let counted = counted.filter(|ios| *ios > 0).map(|ios| (ios as f64 * self.block.1) as u64);
        let io_bytes = moved.filter(|moved| *moved > 0).unwrap_or(all);
        let io_bytes = counted.map_or(io_bytes, |counted| counted.min(io_bytes));
        Some(Amount { offset_bytes, file_bytes, io_bytes })
    }

    /// What is used of files that end at `each` bytes, or of a share of them.
    fn within(&self, each: u64, size: Option<PlaceOption>, offset_bytes: u64) -> Option<u64> {
        let left = each.saturating_sub(offset_bytes);
        if left == 0 {
            let why = format!("it is not within the filesize of {}", Size(each));
            let asked = self.settings.peek("offset").or(self.settings.peek("offset_increment"));
            asked.into_iter().for_each(|one| self.settings.refuse(one, Why::new(why.clone())));
            return None;
        }
        Some(match size {
            Some(PlaceOption::Percent(percent)) => self.share(percent, each).min(left),
            _ => left,
        })
    }

    /// The first byte: a share of the file goes up to a whole block, or to `offset_align`.
    fn offset(&self, clone: u32, paths: &[PathBuf], base: Base) -> Option<u64> {
        let settings = self.settings;
        let read = |text: &str| asked(text, base);
        let further = match settings.value("offset_increment", read) {
            None => 0,
            Some(_) if clone == 0 => 0,
            Some(PlaceOption::Bytes(bytes)) => bytes,
            Some(PlaceOption::Percent(percent)) => {
                (self.whole("offset_increment", paths)? as f64 * percent / 100.0) as u64
            }
        };
        let further = further.saturating_mul(u64::from(clone));
        // As in fio, whatever the value of offset=; a device has no end to append to.
        if settings.switch("file_append").unwrap_or(false)
            && !paths.iter().any(|path| path.starts_with("/dev"))
        {
            return self.end_of(paths);
        }
        let align = settings.value("offset_align", |text| value::size(text, base));
        match settings.value("offset", read) {
            None => Some(further),
            Some(PlaceOption::Bytes(bytes)) => Some(bytes.saturating_add(further)),
            Some(PlaceOption::Percent(percent)) if percent > 0.0 => {
                let whole = self.whole("offset", paths)?;
                let begin = (whole as f64 * percent / 100.0) as u64;
                let align = align.filter(|align| *align > 0).unwrap_or(self.block.0);
                Some(begin.saturating_add(further).div_ceil(align).saturating_mul(align))
            }
            Some(PlaceOption::Percent(_)) => Some(further),
        }
    }

    /// Where the files end.
    fn end_of(&self, paths: &[PathBuf]) -> Option<u64> {
        let least = self.there(paths)?.unwrap_or(0);
        let ends_there =
            |path: &PathBuf| self.environment.bytes_of(path).ok().flatten().unwrap_or(0) == least;
        if let (false, Some(one)) =
            (paths.iter().all(ends_there), self.settings.peek("file_append"))
        {
            let why = "its files end at different places; append to one of them in each job";
            self.settings.refuse(one, Why::new(why));
            return None;
        }
        Some(least)
    }

    /// What is left of the files behind an offset.
    fn rest(&self, paths: &[PathBuf], offset_bytes: u64) -> Option<u64> {
        let there = self.there(paths)?;
        self.note_different_sizes(there, paths);
        if self.plans_only {
            let left = there.unwrap_or(PLANNED_BYTES).saturating_sub(offset_bytes);
            return Some(if left > 0 { left } else { PLANNED_BYTES });
        }
        if there.is_none() {
            let path = paths.first().map_or(Path::new("a file"), PathBuf::as_path);
            let why = format!("{} does not exist yet; say size=", path.display());
            self.settings.refuse_as(job_refusal(self.job.0, self.job.1, why));
        }
        there.map(|whole| whole.saturating_sub(offset_bytes))
    }

    /// Notes where not all of every file is used, since the smallest has less.
    fn note_different_sizes(&self, least: Option<u64>, paths: &[PathBuf]) {
        let is_larger = |path: &PathBuf| {
            let found = self.environment.bytes_of(path).ok().flatten();
            found.zip(least).is_some_and(|(found, least)| found > least)
        };
        if let (Some(least), Some(one)) = (least, self.settings.peek("filename"))
            && paths.iter().any(is_larger)
        {
            let text = format!("files of one job have one size: {} of each are used", Size(least));
            self.settings.note(one, &text);
        }
    }

    fn share(&self, percent: f64, of: u64) -> u64 {
        (of as f64 * percent / 100.0) as u64 / self.block.0 * self.block.0
    }

    /// The least of the files that exist; `None` when that of one is not known.
    fn there(&self, paths: &[PathBuf]) -> Option<Option<u64>> {
        let mut least = None;
        for path in paths {
            if self.plans_only && self.environment.lacks_device(path) {
                least = Some(least.map_or(PLANNED_BYTES, |least: u64| least.min(PLANNED_BYTES)));
                continue;
            }
            match self.environment.bytes_of(path) {
                Ok(found) => least = found.into_iter().chain(least).min(),
                Err(why) => {
                    let why = format!("the size of {} is not known: {why}", path.display());
                    let why = format!("{why}; say size= or run as a user who may");
                    self.settings.refuse_as(job_refusal(self.job.0, self.job.1, why));
                    return None;
                }
            }
        }
        Some(least)
    }

    /// The same where an option is a share of it.
    fn whole(&self, option: &'static str, paths: &[PathBuf]) -> Option<u64> {
        let there = self.there(paths)?;
        if let (None, Some(assignment)) = (there, self.settings.peek(option)) {
            if self.plans_only {
                return Some(PLANNED_BYTES);
            }
            let why = "it is a share of a file that does not exist; use bytes";
            self.settings.refuse(assignment, Why::new(why));
        }
        there
    }
}

/// The size of files; of a range the middle, which is the mean of fio's draws.
fn one_size(text: &str, base: Base) -> Result<u64, Why> {
    let (low, high) = value::range(text);
    Ok((value::size(low, base)? + value::size(high, base)?) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons_part_names_unless_escaped() {
        assert_eq!(split_names("a:b"), ["a", "b"]);
        assert_eq!(split_names(r"/dev/a\:0:/dev/b"), ["/dev/a:0", "/dev/b"]);
        assert_eq!(split_names(r"C\x"), [r"C\x"]);
        assert!(split_names("::").is_empty());
    }

    #[test]
    fn names_are_made_of_job_clone_and_file() {
        assert_eq!(named(NAME_FORMAT, "a", 1, 2), "a.1.2");
        assert_eq!(named("x.$filenum", "a/b", 1, 2), "x.2");
        assert_eq!(named("x$clientuid.$jobnum", "a", 1, 2), "x.1");
        assert_eq!(named(NAME_FORMAT, "../b", 0, 0), ".._b.0.0");
    }
}
