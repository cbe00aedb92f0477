//! The top of the page: the verdict, and three figures.

use iostrata_run::{QueueComparison, QueueDocument, QueueQuestion};
use maud::{Markup, html};

use crate::simulate::{grouped, has_reader, kernel_words, kernels, sizes};
use crate::words;

/// Verdict sentences and a strip of three.
pub(crate) fn header(queue: &QueueDocument) -> Markup {
    let mut sentences = queue.headline.iter();
    let first = |what| queue.effects.iter().find(|effect| effect.what == what);
    html! {
        h1 { (sentences.next().unwrap_or(&queue.title)) }
        @for sentence in sentences { p.lead { (sentence) } }
        p.note.question { b { (queue.title) } " In virtual time, as in: " (queue.then_source) "." }
        @if queue.interrupted { p.warn { "Stopped before its end; replicates are missing." } }
        div.strip {
            (effect(queue, "A larger queue", "rows per hour", first(QueueQuestion::NrRequests)))
            (effect(queue, "What a reader pays", "99th percentile", first(QueueQuestion::Reader)))
            (how(queue))
        }
    }
}

/// A device in words.
fn title_of<'a>(queue: &'a QueueDocument, text: &'a str) -> &'a str {
    let device = queue.devices.iter().find(|device| device.device == text);
    device.map_or(text, |device| &device.title)
}

fn effect(
    queue: &QueueDocument,
    title: &str,
    what: &str,
    effect: Option<&QueueComparison>,
) -> Markup {
    html! {
        div {
            h2 { (title) }
            @match effect {
                Some(effect) => {
                    p.big { (words::times(effect.ratio)) " " (what) }
                    p {
                        (effect.from) " \u{2192} " (effect.to.trim_start_matches("nr_requests ")) ", "
                        (title_of(queue, &effect.device)) ", "
                        (kernel_words(effect.kernel))
                        @if let Some(ci95) = effect.ratio_ci95 {
                            ", 95 % " (words::times_range(ci95))
                        }
                        ", n = " (effect.ratio_n) ". " a href="#compared" { "All comparisons" }
                    }
                }
                None => { p.big { "Not simulated" } p { "There are no two runs to compare." } }
            }
        }
    }
}

fn how(queue: &QueueDocument) -> Markup {
    let sizes: Vec<String> = sizes(queue).into_iter().map(grouped).collect();
    let kernels: Vec<&str> = kernels(queue).into_iter().map(kernel_words).collect();
    html! {
        div {
            h2 { "Simulated" }
            p.big { (queue.runs.len()) " runs in " (words::value(queue.duration_s, "s")) }
            p {
                "nr_requests " (sizes.join(" \u{b7} ")) "; " (queue.devices.len()) " devices; "
                (kernels.join(", "))
                @if has_reader(queue) { "; with and without a reader" }
                "; seed " (queue.seed) "."
            }
        }
    }
}
