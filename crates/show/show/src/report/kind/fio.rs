//! The run of job files: each job as a single workload is shown.

use iostrata_run::{FioDocument, FioJobDocument, RunResult};

use super::common::{method, over_time, replicate_verdicts};
use super::host::host;
use super::io;
use crate::report::RunView;
use crate::report::cell::{Span, Text};
use crate::report::document::{Block, On, Report};
use crate::report::head::Head;
use crate::report::words;

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Fio(fio)) = view.result else { return None };
    let jobs: Vec<&FioJobDocument> = fio.waves.iter().flat_map(|wave| &wave.jobs).collect();
    let written = words::value(fio.bytes_written as f64, "bytes");
    let mut summary = Text::from(format!("{written} written."));
    if !fio.verdicts.is_sound() {
        summary = summary.plain(" ").with(Span::Verdicts(fio.verdicts.clone()));
    }
    let mut report = Report::new(&[], summary);
    match jobs.as_slice() {
        [only] => {
            report.headline = vec![io::headline(&only.figures)];
            report.strip = io::cards(&only.figures);
        }
        jobs => {
            let waves = if fio.waves.len() == 1 { "together" } else { "in waves" };
            report.headline = vec![format!("{} workloads, run {waves}", jobs.len())];
        }
    }
    sections(&mut report, fio);
    report.add("time", "Over time", over_time(view, On::PAGE));
    report.add("host", "The machine", host(view, None));
    let mut all = replicate_verdicts(view);
    all.extend(fio.verdicts.iter());
    report.add("method", "How it was measured", method(false, all));
    report.kept = fio.run.as_ref().map(|run| format!("The run is kept in {run}").into());
    Some((view.head(None, None), report))
}

/// One for each job, and one for what was ignored of the job files.
fn sections(report: &mut Report, fio: &FioDocument) {
    for (number, wave) in fio.waves.iter().enumerate() {
        for (place, job) in wave.jobs.iter().enumerate() {
            let clones = match job.clones {
                1 => String::new(),
                clones => format!(", {clones} clones"),
            };
            let duration = words::value(wave.duration_s, "s");
            let of = match fio.waves.len() {
                1 => String::new(),
                _ => format!(" (wave {}, {duration})", number + 1),
            };
            let mut body = io::workload(&job.figures);
            if let Some(description) = &job.description {
                let say =
                    Block::Text(crate::report::document::Style::Say, description.as_str().into());
                body.0.insert(0, (On::ALL, say));
            }
            let id = format!("job-{}-{}", number + 1, place + 1);
            report.add(&id, &format!("{}{clones}{of}", job.name), body);
        }
    }
    if !fio.warnings.is_empty() {
        let mut body = crate::report::document::Blocks::new();
        let all = fio.warnings.iter().map(|warning| warning.to_string().into()).collect();
        body.add(On::ALL, Block::List(all));
        report.add("warnings", "Not as fio does it", body);
    }
}
