//! What those who measure know of a load.
//!
//! Purpose: meters, studies and the probe measure whatever yields the figures of a replicate in
//! windows of time: requests of files here, transactions elsewhere.

use iostrata_io::FileSpec;
use iostrata_plan::{IoApi, Stream};

use crate::controller::{Interim, Surroundings, WindowObserver};
use crate::error::LoadError;
use crate::figures::WindowFigures;
use crate::job::StreamPlan;
use crate::window::measure_in_view;

/// Something that keeps storage or a database busy, one window at a time.
pub trait Load {
    /// Whether it reaches storage, so that the host is worth watching meanwhile.
    fn reaches_storage(&self) -> bool;

    /// Runs for one window and gives back what it measured.
    ///
    /// # Errors
    /// When nothing could be measured. Operations that failed end the window and are reported with
    /// it.
    fn run(
        &self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowFigures, LoadError>;
}

/// Requests of files: streams that run together.
#[derive(Clone, Debug)]
pub struct IoLoad<'a> {
    streams: Vec<StreamPlan>,
    interim: Option<Interim<'a>>,
}

impl<'a> IoLoad<'a> {
    /// Streams, each on its own prepared files; none for the null API.
    ///
    /// # Panics
    /// When there are not files for every stream.
    pub fn new(streams: &[Stream], files: Vec<Vec<FileSpec>>) -> Self {
        assert_eq!(streams.len(), files.len(), "files for every stream");
        let plan = |(stream, files): (&Stream, Vec<FileSpec>)| {
            let (name, spec) = (stream.name.clone(), stream.spec.clone());
            StreamPlan { name, spec, files, detail: false }
        };
        Self { streams: streams.iter().zip(files).map(plan).collect(), interim: None }
    }

    /// The same with its requests noted in detail, which costs a reading of the clock for every
    /// submission.
    #[must_use]
    pub fn in_detail(mut self) -> Self {
        self.streams.iter_mut().for_each(|stream| stream.detail = true);
        self
    }

    /// The same, with a receiver of the figures so far.
    #[must_use]
    pub fn with_interim(mut self, interim: Option<Interim<'a>>) -> Self {
        self.interim = interim;
        self
    }
}

impl Load for IoLoad<'_> {
    fn reaches_storage(&self) -> bool {
        self.streams.iter().any(|stream| stream.spec.api != IoApi::Null)
    }

    fn run(
        &self,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
    ) -> Result<WindowFigures, LoadError> {
        let outcome = measure_in_view(&self.streams, surroundings, observer, self.interim)?;
        Ok(WindowFigures::of(&outcome))
    }
}
