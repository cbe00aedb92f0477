//! A simulated queue for a terminal: headline, rows per hour by device and queue size, what a
//! reader waits for, the post beside the model.

use iostrata_run::{KernelThen, QueueDevice, QueueDocument, QueueRun};

use crate::RunView;
use crate::simulate::{
    Moment, bare, figures, grouped, has_reader, kernel_words, kernels, moments, runs_on, sizes,
};
use crate::text::paper::{Paper, clean, cut, pad, right};
use crate::text::verdict::missing;
use crate::words;

/// Columns of one figure in a table of queue sizes.
const FIGURE: usize = 11;
/// Columns of one figure of the post and of the model.
const PRINTED: usize = 8;
/// Columns between two moments.
const GAP: usize = 2;
/// Fewest columns for a name.
const NAME_MIN: usize = 20;

/// The lines below the origin.
pub(crate) fn lines(view: &RunView<'_>, queue: &QueueDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, sentence) in queue.headline.iter().enumerate() {
        let wrapped = paper.wrapped(sentence, 0);
        lines.extend(wrapped.into_iter().map(|line| if n == 0 { paper.bold(&line) } else { line }));
    }
    let rate = |run: &QueueRun| Some(words::value(run.rows_per_hour, ""));
    let p99 = |run: &QueueRun| Some(words::value(run.reader.as_ref()?.latency_us.p99, "us"));
    let size = |run: &QueueRun| Some(words::value(run.iostat.write_size_kib?, ""));
    let mut parts = vec![
        matrix(queue, "Rows per hour by nr_requests", rate, paper),
        matrix(queue, "Size of a write, KiB", size, paper),
    ];
    if has_reader(queue) {
        parts.push(matrix(queue, "99th percentile of a reader beside the inserts", p99, paper));
    }
    parts.extend([then(queue, paper), against(queue, paper), missing(view, paper)]);
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        lines.push(String::new());
        lines.extend(part);
    }
    lines.push(String::new());
    lines.extend(foot(queue, paper));
    lines
}

/// One row for each device and kernel, one column for each queue size.
fn matrix(
    queue: &QueueDocument,
    title: &str,
    of: impl Fn(&QueueRun) -> Option<String>,
    paper: &Paper,
) -> Vec<String> {
    let sizes = sizes(queue);
    let room = paper.width.saturating_sub(2 + FIGURE * sizes.len()).max(NAME_MIN);
    let head: String = sizes.iter().map(|size| right(&grouped(*size), FIGURE)).collect();
    let mut lines = vec![paper.bold(title), paper.dim(&format!("  {}{head}", pad("", room)))];
    for kernel in kernels(queue) {
        lines.push(paper.dim(&format!("  {}", kernel_words(kernel))));
        for device in &queue.devices {
            let figures = row(queue, device, kernel, &sizes, &of);
            lines.push(format!("  {}{figures}", pad(&clean(&format!("  {}", device.title)), room)));
        }
    }
    lines
}

fn row(
    queue: &QueueDocument,
    device: &QueueDevice,
    kernel: KernelThen,
    sizes: &[u64],
    of: impl Fn(&QueueRun) -> Option<String>,
) -> String {
    let runs = runs_on(queue, device, kernel);
    let figure = |size: &u64| {
        let run = runs.iter().find(|run| run.nr_requests == *size);
        let text = run.and_then(|run| of(run)).unwrap_or_default();
        // What the kernel does not take is what the size before it gave.
        let is_refused = run.is_some_and(|run| run.nr_requests_taken < *size);
        right(&if is_refused { format!("({text})") } else { text }, FIGURE)
    };
    sizes.iter().map(figure).collect()
}

/// One row for each printed figure; post and model side by side for each moment.
fn then(queue: &QueueDocument, paper: &Paper) -> Vec<String> {
    let moments = moments(queue);
    if moments.is_empty() {
        return Vec::new();
    }
    let column = 2 * PRINTED + GAP;
    let room = paper.width.saturating_sub(2 + column * moments.len()).clamp(8, 36);
    let name_of = |moment: &Moment<'_>| {
        let name = moment.name.trim_start_matches("nr_requests ").replace(" rows", "");
        right(&cut(&name, column - 1), column)
    };
    let names: String = moments.iter().map(name_of).collect();
    let heads = format!("{}{}", right("post", PRINTED + GAP), right("model", PRINTED));
    let mut lines = vec![
        paper.bold("The post and the model, at nr_requests, hours, rows"),
        paper.dim(format!("  {}{names}", pad("", room)).trim_end()),
        paper.dim(&format!("  {}{}", pad("", room), heads.repeat(moments.len()))),
    ];
    for name in figures(&moments) {
        let cells: String = moments.iter().map(|moment| cells(moment, name, paper)).collect();
        lines.push(format!("  {}{cells}", pad(&clean(name), room)));
    }
    lines
}

fn cells(moment: &Moment<'_>, name: &str, paper: &Paper) -> String {
    let row = moment.rows.iter().find(|row| row.row.text == name).map(|row| &row.row);
    let then = row.and_then(|row| Some(bare(row.then?, &row.unit)));
    let now = row.and_then(|row| Some(bare(row.now?, &row.unit)));
    format!(
        "{}{}",
        right(&then.unwrap_or_default(), PRINTED + GAP),
        paper.bold(&right(&now.unwrap_or_default(), PRINTED))
    )
}

/// Where the model and the post disagree.
fn against(queue: &QueueDocument, paper: &Paper) -> Vec<String> {
    if queue.contradictions.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![paper.bold("Where they disagree")];
    lines.extend(queue.contradictions.iter().flat_map(|sentence| paper.wrapped(sentence, 2)));
    lines
}

fn foot(queue: &QueueDocument, paper: &Paper) -> Vec<String> {
    let replicates = queue.runs.iter().map(|run| run.rows_per_hour_n).max().unwrap_or(0);
    let mut text = format!(
        "{} runs of {replicates} replicates in virtual time, seed {}, in {}",
        queue.runs.len(),
        queue.seed,
        words::value(queue.duration_s, "s"),
    );
    let clamped = queue.runs.iter().any(|run| run.nr_requests_taken < run.nr_requests);
    if clamped {
        text.push_str("; in brackets: sizes that the kernel does not take");
    }
    if queue.interrupted {
        text = format!("Stopped before its end; {text}");
    }
    if !queue.verdicts.is_sound() {
        text.push_str(&format!("; cautions: {}", words::verdicts(&queue.verdicts)));
    }
    let mut lines: Vec<String> =
        paper.wrapped(&text, 0).iter().map(|line| paper.dim(line)).collect();
    if let Some(report) = &queue.report {
        lines.push(format!("{} {}", paper.bold("Report:"), clean(report)));
    }
    lines
}
