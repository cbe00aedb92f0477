//! The short verdict for a terminal.

use super::paper::{Paper, clean};
use super::{fio, io, simulate, study, verdict};
use crate::RunView;
use crate::words;

/// The verdict of a run, with a newline at its end.
pub(crate) fn verdict(view: &RunView<'_>, width: usize, colour: bool) -> String {
    let paper = Paper::new(width, colour);
    let mut lines = vec![origin(view, &paper), String::new()];
    if let Some(probe) = view.probe() {
        lines.extend(verdict::lines(view, probe, &paper));
    } else if let Some(document) = view.study() {
        lines.extend(study::terminal::lines(view, document, &paper));
    } else if let Some(document) = view.io() {
        lines.extend(io::lines(document, &paper));
    } else if let Some(document) = view.queue() {
        lines.extend(simulate::terminal::lines(view, document, &paper));
    } else if let Some(document) = view.fio() {
        lines.extend(fio::lines(document, &paper));
    } else {
        lines.extend(partial(view, &paper));
    }
    let notes = view.notes.iter();
    lines.extend(notes.flat_map(|note| paper.wrapped(note, 0)).map(|line| paper.warn(&line)));
    lines.join("\n") + "\n"
}

/// What was run on what.
fn origin(view: &RunView<'_>, paper: &Paper) -> String {
    let name = words::command(view.manifest.kind);
    let words: Vec<&str> = name.split(' ').collect();
    let command = format!("iostrata {name}");
    let mut parts = Vec::new();
    parts.extend(view.study().map(|study| study.study.clone()));
    if let Some(host) = view.host() {
        parts.push(host.path.path.clone());
        parts.extend(host.path.file_system.clone());
        parts.extend(host.path.devices.first().map(|device| device.name.clone()));
        parts.extend(host.machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    } else {
        parts.push(
            view.manifest.arguments.iter().skip(words.len()).cloned().collect::<Vec<_>>().join(" "),
        );
    }
    let place = super::paper::cut(&clean(&parts.join(", ")), paper.width - command.len() - 1);
    format!("{} {}", paper.bold(&command), paper.dim(&place))
}

/// A run that was stopped before its end: what it has.
fn partial(view: &RunView<'_>, paper: &Paper) -> Vec<String> {
    let measured = view.measured();
    let mut lines = vec![paper.warn("Stopped before its end; measured until then:")];
    for (point, replicates) in measured.iter().take(30) {
        let stream = replicates.last().and_then(|last| last.streams.get(point.metric.stream));
        let op = stream.and_then(|stream| stream.ops.iter().next());
        let rate = op.map_or(String::new(), |(_, op)| words::value(op.iops.value, "/s"));
        let title = super::paper::pad(&clean(&point.title), 46);
        lines.push(format!("  {title} {rate}"));
    }
    if measured.len() > 30 {
        lines.push(format!("  and {} more", measured.len() - 30));
    }
    lines
}
