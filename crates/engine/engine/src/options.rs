//! How an engine is opened.

use std::path::Path;

use iostrata_innodb::Settings;

use crate::check::CheckReport;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::open;
use crate::parts::Background;
use crate::recovery::{Progress, RecoveryReport};
use crate::storage::Disks;
use crate::table_index::IndexDefinition;

impl Engine {
    /// Opens the engine in a directory with these settings, or makes one there if the directory is
    /// empty. What the last process left is recovered first. All settings are those given here:
    /// to go on with those that were kept use [`Engine::options`].
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    pub fn open(directory: impl AsRef<Path>, settings: Settings) -> Result<Self, EngineError> {
        Self::options().settings(settings).open(directory)
    }

    /// Opens or makes an engine on disks of the caller's choice.
    ///
    /// # Errors
    /// As [`OpenOptions::open_on`].
    pub fn open_on(
        disks: Disks,
        settings: Settings,
        background: Background,
    ) -> Result<Self, EngineError> {
        Self::options().settings(settings).open_on(disks, background)
    }

    /// What an engine can be opened with: the settings that were kept with its data, for a new one
    /// the default ones, until others are named.
    pub fn options<'p>() -> OpenOptions<'p> {
        OpenOptions::default()
    }

    /// Settings for a machine that serves this engine: a quarter of its memory for pages, and 2 GiB
    /// of redo, which are written when the engine is made.
    pub fn server_settings() -> Settings {
        let memory = rustix::system::sysinfo();
        Settings::for_server(memory.totalram * u64::from(memory.mem_unit))
    }

    /// The settings that are kept with the data of a directory, and that [`Engine::options`] begins
    /// with; none when there is no engine.
    ///
    /// # Errors
    /// A settings file that cannot be read.
    pub fn kept_settings(directory: impl AsRef<Path>) -> Result<Option<Settings>, EngineError> {
        open::kept_settings(directory.as_ref())
    }
}

/// Called as recovery proceeds.
type Tell<'p> = dyn FnMut(&Progress) + 'p;

/// Options for opening an engine: settings, indexes, and a callback for the progress of recovery.
///
/// A setting has the value that [`set`](Self::set) names here; otherwise the value kept with the
/// data, which it was made with or changed to while open; otherwise its default.
///
/// ```no_run
/// # use iostrata_engine::Engine;
/// let engine = Engine::options()
///     .set("buffer_pool_size", "256M")?
///     .progress(|progress| println!("{:?}: {}", progress.phase, progress.done_bytes))
///     .open("cities")?;
/// # Ok::<(), iostrata_engine::EngineError>(())
/// ```
#[derive(Default)]
#[must_use = "nothing is opened yet"]
pub struct OpenOptions<'p> {
    /// Replaces the settings kept with the data.
    settings: Option<Settings>,
    /// Names and values that were set since.
    named: Vec<(String, String)>,
    indexes: Vec<IndexDefinition>,
    progress: Option<Box<Tell<'p>>>,
}

impl std::fmt::Debug for OpenOptions<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "OpenOptions({:?}, {:?})", self.settings, self.named)
    }
}

impl<'p> OpenOptions<'p> {
    /// Takes all of these settings instead of the kept ones and those set before.
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings: Some(settings), named: Vec::new(), ..self }
    }

    /// Changes one setting, by its name and value as in docs/settings.md.
    ///
    /// # Errors
    /// An unknown setting, or a value that it does not take.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, EngineError> {
        self.settings.clone().unwrap_or_default().set(name, value)?;
        self.named.push((name.to_owned(), value.to_owned()));
        Ok(self)
    }

    /// The settings to open with, where these are kept.
    fn with_kept(
        &self,
        kept: impl FnOnce() -> Result<Option<Settings>, EngineError>,
    ) -> Result<Settings, EngineError> {
        let mut settings = match &self.settings {
            Some(settings) => settings.clone(),
            None => kept()?.unwrap_or_default(),
        };
        self.named.iter().try_for_each(|(name, value)| settings.set(name, value))?;
        Ok(settings)
    }

    /// Names an index of a table and the function that gives a row's secondary key. An index that
    /// is not there is made: at opening from the rows of the table, or with the table when that is
    /// made. An index that is there and not named keeps its table from being written.
    ///
    /// ```
    /// # use iostrata_engine::{Background, Disks, Engine, Isolation};
    /// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
    /// let by_country = |_city: &[u8], country: &[u8], key: &mut Vec<u8>| {
    ///     key.extend_from_slice(country);
    ///     true
    /// };
    /// let options = Engine::options().index("cities", "country", by_country);
    /// # let engine = options.open_on(disks, Background::Manual)?;
    /// let cities = engine.open_table("cities")?;
    /// let mut t = engine.begin(Isolation::default())?;
    /// t.insert(&cities, b"Oslo", b"Norway")?;
    /// t.insert(&cities, b"Bergen", b"Norway")?;
    /// let country = cities.index("country").expect("it was named");
    /// assert_eq!(t.index_get(&country, b"Norway")?, [&b"Bergen"[..], b"Oslo"]);
    /// # Ok::<(), iostrata_engine::EngineError>(())
    /// ```
    pub fn index(
        self,
        table: &str,
        name: &str,
        extract: impl Fn(&[u8], &[u8], &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.define(IndexDefinition::new(table, name, extract))
    }

    /// As [`index`](Self::index), but an index that is not there is made only by
    /// [`Engine::make_index`]: its table is filled much faster before.
    pub fn late_index(
        self,
        table: &str,
        name: &str,
        extract: impl Fn(&[u8], &[u8], &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.define(IndexDefinition::new(table, name, extract).late())
    }

    /// Names an index with all its options, such as the version of its function.
    pub fn define(mut self, index: IndexDefinition) -> Self {
        self.indexes.push(index);
        self
    }

    /// Calls `tell` with the progress of recovery.
    pub fn progress(self, tell: impl FnMut(&Progress) + 'p) -> Self {
        Self { progress: Some(Box::new(tell)), ..self }
    }

    /// Opens the engine in a directory, or makes one there if the directory is empty. What the
    /// last process left is recovered first.
    ///
    /// # Errors
    /// A directory that another process has, that holds something else, or whose data cannot be
    /// opened with these settings; an error of recovery.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Engine, EngineError> {
        let directory = directory.as_ref();
        let settings = self.with_kept(|| open::kept_settings(directory))?;
        let mut progress = self.progress.unwrap_or_else(|| Box::new(|_| {}));
        open::directory(directory, (settings, self.indexes), &mut *progress).map(Engine::new)
    }

    /// Opens the engine in a directory, verifies every structure and closes it. Where a damaged
    /// page keeps it from being opened, the pages in use are verified one by one, and there is no
    /// report of a recovery.
    ///
    /// # Errors
    /// As [`OpenOptions::open`] and [`Engine::check`], but for damaged pages: these are in the
    /// report.
    pub fn check(
        self,
        directory: impl AsRef<Path>,
    ) -> Result<(CheckReport, Option<RecoveryReport>), EngineError> {
        let settings = self.with_kept(|| open::kept_settings(directory.as_ref()))?;
        let engine = match self.open(directory.as_ref()) {
            Ok(engine) => engine,
            Err(EngineError::Corrupt { page, problem }) => {
                let damaged = (page, problem);
                let report = open::check_pages(directory.as_ref(), &settings, damaged)?;
                return Ok((report, None));
            }
            Err(error) => return Err(error),
        };
        let (report, recovery) = (engine.check()?, engine.recovery().clone());
        let closed = engine.close();
        // What is damaged may keep it from being closed as well.
        if report.is_clean() {
            closed?;
        }
        Ok((report, Some(recovery)))
    }

    /// Opens or makes an engine on disks of the caller's choice.
    ///
    /// # Errors
    /// As [`OpenOptions::open`]; but without a check whether another process has the disks.
    pub fn open_on(self, disks: Disks, background: Background) -> Result<Engine, EngineError> {
        let settings = self.with_kept(|| open::kept_on(&*disks.data))?;
        let mut progress = self.progress.unwrap_or_else(|| Box::new(|_| {}));
        let plan = (settings, self.indexes);
        open::disks(disks, plan, background, &mut *progress).map(Engine::new)
    }
}
