//! Pieces that several sections use.

use iostrata_spec::Layer;
use iostrata_stats::{Interval, Verdicts};
use maud::{Markup, html};

use crate::chart::{Chart, Charts, layer_colour};
use crate::words;

/// A chart with its title and the sentence that says what it shows.
pub(crate) fn figure(charts: &mut Charts, chart: &Chart, title: &str, says: &str) -> Markup {
    charts.add(chart);
    html! {
        figure {
            figcaption { @if !title.is_empty() { b { (title) } } (says) }
            (place(&chart.name, chart.height, title))
        }
    }
}

/// The element in which a chart is drawn.
pub(crate) fn place(name: &str, height: usize, title: &str) -> Markup {
    html! {
        div.chart id={ "chart-" (name) } data-chart=(name) role="img" aria-label=(title)
            style={ "height:" (height) "px" } {}
    }
}

/// A layer with its colour.
pub(crate) fn layer(layer: Layer) -> Markup {
    html! { span.layer.name style=(colour(layer)) { (layer.title()) } }
}

/// The colour of a layer as a style of an element with the class `layer`.
pub(crate) fn colour(layer: Layer) -> String {
    format!("--c:{}", layer_colour(layer))
}

/// A measured value in large letters with its unit in smaller ones.
pub(crate) fn big(value: f64, ci95: Option<Interval>, unit: &str) -> Markup {
    let shown = words::shown(value, ci95, unit);
    let (number, unit) = words::split(value, unit);
    html! {
        div.figure {
            @if shown.why.is_some() { (shown.text) } @else { (number) " " small { (unit) } }
        }
        @if let Some(why) = shown.why { p.note { (why) } }
    }
}

/// A value with how sure it is: `104 K reads/s +- 1.2 %`.
pub(crate) fn value(value: f64, ci95: Option<Interval>, unit: &str) -> Markup {
    let shown = words::shown(value, ci95, unit);
    html! {
        span title=[shown.why] {
            (shown.text)
            @if let Some(half) = shown.half { span.muted { " \u{b1} " (half) } }
        }
    }
}

/// An interval, or that there is none.
pub(crate) fn interval(ci95: Option<Interval>, unit: &str) -> Markup {
    html! {
        @match ci95 {
            Some(ci95) => (words::interval(ci95, unit)),
            None => span.muted { "none" },
        }
    }
}

/// What speaks against a figure; nothing when it is sound.
pub(crate) fn verdicts(verdicts: &Verdicts) -> Markup {
    html! {
        @for verdict in verdicts.iter() {
            span.tag.warn title=(verdict.explain()) { (words::verdict(verdict)) }
        }
    }
}

/// Something that is unfolded when a reader asks for it.
pub(crate) fn folded(name: &str, what: Markup) -> Markup {
    html! { details data-print { summary { (name) } (what) } }
}

/// A column of a table.
pub(crate) struct Column<'a> {
    /// Its head.
    pub(crate) head: &'a str,
    /// Whether it holds numbers, which stand at the right.
    pub(crate) number: bool,
}

/// A column of text.
pub(crate) const fn text(head: &str) -> Column<'_> {
    Column { head, number: false }
}

/// A column of numbers.
pub(crate) const fn number(head: &str) -> Column<'_> {
    Column { head, number: true }
}

/// A table whose rows become blocks with names on a narrow screen.
pub(crate) fn table(columns: &[Column<'_>], rows: Vec<Vec<Markup>>) -> Markup {
    html! { table.stack { (contents(columns, rows)) } }
}

/// A table of few columns, which fits a narrow screen as it is.
pub(crate) fn slim(columns: &[Column<'_>], rows: Vec<Vec<Markup>>) -> Markup {
    html! { table { (contents(columns, rows)) } }
}

/// A table of many columns, which is moved sideways where it does not fit.
pub(crate) fn wide(columns: &[Column<'_>], rows: Vec<Vec<Markup>>) -> Markup {
    html! {
        div.scroll.tall tabindex="0" {
            table.wide data-sort {
                thead { tr { @for column in columns { th.n[column.number] { (column.head) } } } }
                tbody { @for row in rows { tr {
                    @for (column, cell) in columns.iter().zip(row) {
                        td.n[column.number] { (cell) }
                    }
                } } }
            }
        }
    }
}

/// The choice between charts that take turns in one place.
pub(crate) fn choice(name: &str, noun: &str, titles: &[String]) -> Markup {
    html! {
        div.choice {
            button type="button" value="-1" data-step=(name) aria-label={ "Previous " (noun) } { "\u{2190}" }
            select id={ "choice-" (name) } aria-label=(noun) {
                @for title in titles { option { (title) } }
            }
            button type="button" value="1" data-step=(name) aria-label={ "Next " (noun) } { "\u{2192}" }
        }
    }
}

fn contents(columns: &[Column<'_>], rows: Vec<Vec<Markup>>) -> Markup {
    html! {
        thead { tr {
            @for column in columns { th.n[column.number] { (column.head) } }
        } }
        tbody {
            @for row in rows {
                tr {
                    @for (column, cell) in columns.iter().zip(row) {
                        td.n[column.number] data-label=(column.head) { (cell) }
                    }
                }
            }
        }
    }
}

/// Text as a cell.
pub(crate) fn cell(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}
