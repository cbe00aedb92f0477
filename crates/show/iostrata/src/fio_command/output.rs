//! What `iostrata fio` prints, in which forms and where to.
//!
//! Invariant: several forms come in fio's order: terse, JSON, normal. Notes stay on stderr, also
//! where the results go to a file.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use iostrata_plan::fio::FioPlan;
use serde::Serialize;

use super::measured::MeasuredWave;
use super::{normal, shape, terse};
use crate::args::{FioArgs, OutputFormat};
use crate::display::print_text;
use crate::exit_error::ExitError;

/// Where results go, and in which of fio's forms.
pub struct Output {
    formats: Vec<OutputFormat>,
    /// Whether our own document was requested.
    wants_ours: bool,
    terse_version: u32,
    file: Option<(PathBuf, File)>,
}

impl Output {
    /// As the command line requests; a file is created, or truncated, at once.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn begin(args: &FioArgs) -> Result<Self, ExitError> {
        let mut formats = args.output_format.clone();
        if args.minimal {
            formats = vec![OutputFormat::Terse];
        }
        if args.append_terse {
            if formats.is_empty() {
                formats.push(OutputFormat::Normal);
            }
            formats.push(OutputFormat::Terse);
        }
        let open = |path: &PathBuf| {
            let file = File::create(path).map_err(|error| {
                ExitError::NotHere(format!("--output {}: {error}", path.display()))
            });
            Ok::<_, ExitError>((path.clone(), file?))
        };
        let file = args.output.as_ref().map(open).transpose()?;
        let (wants_ours, terse_version) = (args.common.printing.json, args.terse_version);
        Ok(Self { formats, wants_ours, terse_version, file })
    }

    /// Whether results are printed in forms of fio's.
    pub fn is_fios(&self) -> bool {
        !self.formats.is_empty() || !self.wants_ours
    }

    /// Whether our table follows: where no format was requested.
    pub fn has_table(&self) -> bool {
        self.formats.is_empty() && !self.wants_ours
    }

    /// Prints a text where results go.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn text(&self, text: &str) -> Result<(), ExitError> {
        let Some((path, file)) = &self.file else { return print_text(text) };
        let mut file = file;
        file.write_all(text.as_bytes())
            .map_err(|error| ExitError::NotHere(format!("--output {}: {error}", path.display())))
    }

    /// Prints a document where results go.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn json(&self, document: &impl Serialize) -> Result<(), ExitError> {
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| ExitError::Bug(format!("the document cannot be written: {error}")))?;
        self.text(&format!("{text}\n"))
    }

    /// Prints the results in every requested format; normal where none was.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn results(
        &self,
        plan: &FioPlan,
        waves: &[&MeasuredWave],
        ours: Option<serde_json::Value>,
    ) -> Result<(), ExitError> {
        let has = |format| self.formats.contains(&format);
        let bins = has(OutputFormat::JsonPlus);
        let mut shape = shape::document(plan, waves, bins);
        shape.iostrata = ours;
        if has(OutputFormat::Terse) {
            self.text(&terse::text(&shape, self.terse_version))?;
        }
        if bins || has(OutputFormat::Json) {
            self.json(&shape)?;
        }
        if self.has_table() || has(OutputFormat::Normal) {
            self.text(&normal::text(&shape))?;
        }
        Ok(())
    }

    /// Prints the results so far: of the waves that ended and of the running one. A failure is left
    /// to the results at the end.
    pub fn status(&self, plan: &FioPlan, ended: &[MeasuredWave], running: MeasuredWave) {
        let waves: Vec<&MeasuredWave> = ended.iter().chain([&running]).collect();
        let _shows_at_the_end = self.results(plan, &waves, None);
    }

    /// Prints what fio prints before its jobs run, where its normal format is requested.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn header(&self, plan: &FioPlan) -> Result<(), ExitError> {
        match self.has_table() || self.formats.contains(&OutputFormat::Normal) {
            true => self.text(&normal::header(plan, &shape::version())),
            false => Ok(()),
        }
    }
}
