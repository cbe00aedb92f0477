//! How long requests wait as their rate comes near the limit: a curve for each axis of rates.

use iostrata_run::{StudyAxis, StudyDocument, StudyResponse};
use maud::{Markup, html};

use crate::chart::{Charts, GREY, Line, Mark, line_colour, lines, plain};
use crate::html::parts;
use crate::study::{axis_words, rated, rated_place};
use crate::words;

/// The curves; nothing where no request has a schedule.
pub(crate) fn section(study: &StudyDocument, charts: &mut Charts) -> Option<Markup> {
    rated(study).next()?;
    Some(html! {
        p.say {
            "From the moment that the schedule gives a request to its end, so that a request counts "
            "its time in the queue even if its worker was still busy with others."
        }
        div.panels {
            @for (n, (axis, response)) in rated(study).enumerate() {
                (curve(n, &rated_place(study, axis), axis, response, charts))
            }
        }
    })
}

fn curve(
    n: usize,
    place: &str,
    axis: &StudyAxis,
    response: &StudyResponse,
    charts: &mut Charts,
) -> Markup {
    let title = if place.is_empty() { "Response time".to_owned() } else { words::title(place) };
    let knee = response.knee.map(|knee| (knee, "waiting begins"));
    let line = |name: &'static str, colour, values: &[f64], marked| {
        let mark = |(x, y): (&f64, &f64)| Mark {
            x: *x,
            y: *y,
            ci95: None,
            hover: format!(
                "{}, {x} % of the limit<br>{name} <b>{}</b>  ({})",
                plain(&title),
                words::value(*y, "us"),
                words::exact(*y)
            ),
        };
        let marks = axis.x.iter().zip(values).map(mark).collect();
        Line { name, colour, dashed: false, marks, marked }
    };
    let drawn = [
        line("99th percentile", line_colour(0), &response.p99_us, knee),
        line("mean", GREY, &response.mean_us, None),
    ];
    let x_title = axis_words(&axis.factor);
    let chart = lines(&format!("response-{n}"), &x_title, "response time, us", &drawn);
    parts::figure(charts, &chart, &title, &backlog(response))
}

fn backlog(response: &StudyResponse) -> String {
    response.backlog.as_ref().map_or_else(String::new, |backlog| {
        format!(
            ": at {} % the queue grows by {} requests every second ({}), for as long as that lasts.",
            backlog.at,
            words::value(backlog.per_s, ""),
            words::interval(backlog.per_s_ci95, ""),
        )
    })
}
