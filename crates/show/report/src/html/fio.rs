//! The run of job files: each job as a single workload is shown.

use iostrata_run::{FioDocument, FioJobDocument};
use maud::{Markup, html};

use super::{io, parts};
use crate::words;

/// The rates of all jobs together as a headline.
pub(crate) fn header(fio: &FioDocument) -> Markup {
    let jobs: Vec<&FioJobDocument> = fio.waves.iter().flat_map(|wave| &wave.jobs).collect();
    if let [only] = jobs.as_slice() {
        return io::header(&only.figures);
    }
    let waves = if fio.waves.len() == 1 { "together" } else { "in waves" };
    html! {
        h1 { (jobs.len()) " workloads, run " (waves) }
        @if !fio.verdicts.is_sound() { p.note.below { (parts::verdicts(&fio.verdicts)) } }
    }
}

/// Figures and percentiles of every job, and what was ignored of the job files.
pub(crate) fn section(fio: &FioDocument) -> Markup {
    html! {
        @for (number, wave) in fio.waves.iter().enumerate() {
            @if fio.waves.len() > 1 {
                p.say { "Wave " (number + 1) ", " (words::value(wave.duration_s, "s")) }
            }
            @for job in &wave.jobs {
                h3 { (job.name) @if job.clones > 1 { ", " (job.clones) " clones" } }
                @if let Some(description) = &job.description { p.say { (description) } }
                (io::section(&job.figures))
                @if !job.figures.verdicts.is_sound() {
                    p.note { (parts::verdicts(&job.figures.verdicts)) }
                }
            }
        }
        @for warning in &fio.warnings { p.note { (warning.to_string()) } }
    }
}
