//! A simulated queue in Markdown.

use iostrata_run::{QueueDocument, QueueThenRow};

use crate::simulate::{asked_and_taken, bare, kernel_words};
use crate::text::markdown::{escaped, figure, table};
use crate::words;

/// The whole document but for its foot.
pub(crate) fn document(queue: &QueueDocument) -> String {
    let mut text = "# iostrata simulate queue\n".to_owned();
    for sentence in &queue.headline {
        text.push_str(&format!("\n{}\n", escaped(sentence)));
    }
    text.push_str("\n## Every run\n");
    text.push_str(&runs(queue));
    if !queue.effects.is_empty() {
        text.push_str("\n## One thing at a time\n\n");
        for effect in &queue.effects {
            text.push_str(&format!("- {}\n", escaped(&effect.text)));
        }
    }
    if !queue.then.is_empty() {
        text.push_str("\n## The post and the model\n");
        text.push_str(&format!(
            "\n{}. {}.\n",
            escaped(&queue.then_source),
            escaped(&queue.then_machine)
        ));
        text.push_str(&then(queue));
    }
    let sentences = queue.contradictions.iter().chain(&queue.limits);
    let listed: String = sentences.map(|sentence| format!("- {}\n", escaped(sentence))).collect();
    if !listed.is_empty() {
        text.push_str(&format!("\n{listed}"));
    }
    text
}

fn runs(queue: &QueueDocument) -> String {
    let row = |run: &iostrata_run::QueueRun| {
        let kib = run.iostat.write_size_kib.map_or(String::new(), |kib| words::value(kib, "KiB"));
        let reader = run.reader.as_ref().map(|one| words::value(one.latency_us.p99, "us"));
        vec![
            escaped(&run.device),
            kernel_words(run.kernel).to_owned(),
            asked_and_taken(run),
            figure(run.rows_per_hour, run.rows_per_hour_ci95, run.rows_per_hour_n, ""),
            words::value(run.iostat.writes_per_s, "/s"),
            kib,
            reader.unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = queue.runs.iter().map(row).collect();
    let head = ["device", "kernel", "nr_requests", "rows per hour", "writes", "each", "reader p99"];
    table(&head, &rows)
}

fn then(queue: &QueueDocument) -> String {
    let row = |row: &QueueThenRow| {
        let of = |value: Option<f64>| value.map_or(String::new(), |v| bare(v, &row.row.unit));
        let times = row.row.times.map_or(String::new(), words::times);
        vec![escaped(&row.moment), escaped(&row.row.text), of(row.row.then), of(row.row.now), times]
    };
    let rows: Vec<_> = queue.then.iter().map(row).collect();
    table(&["when", "what", "post", "model", "model / post"], &rows)
}
