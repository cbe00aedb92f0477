//! A report as one HTML file.
//!
//! Invariants: every text goes through maud's escaping (the only exceptions are this crate's own
//! style and script, and JSON that can end no script element); the page's policy forbids every
//! request, so that it works offline and reports to no server that it was opened.

use iostrata_plan::Layer;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::cell::{Cell, Span, Text, Tone, What};
use crate::report::chart::Plot;
use crate::report::colour::{Colour, stylesheet};
use crate::report::document::{
    Block, Blocks, Column, Entry, On, Panels, Report, Row, Style, Table, TableLayout,
};
use crate::report::view::Head;
use crate::report::{svg, words};

/// Nothing may be loaded from anywhere; scripts and styles are those in the page.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const POINTS: &str = include_str!("../../assets/points.js");

/// Entries that are shown at once.
const ENTRIES_OPEN: usize = 12;

/// The whole page.
pub(crate) fn page(head: &Head, report: &Report) -> String {
    let sections: Vec<_> =
        report.sections.iter().filter(|one| one.body.on(On::PAGE).next().is_some()).collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="generator" content={ "iostrata " (head.version) };
                meta name="referrer" content="no-referrer";
                title { (head.title()) }
                style { (PreEscaped(stylesheet())) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (header(head, report))
                    nav aria-label="Contents" {
                        @for one in &sections { a href={ "#" (one.id) } { (one.title) } }
                    }
                    @for section in &sections {
                        section id=(section.id) { h2 { (section.title) } (blocks(&section.body)) }
                    }
                    footer { (head.made) " Command: " code { (head.command_line) } }
                }
                @if let Some(points) = &report.points {
                    script type="application/json" id="point-data" {
                        (PreEscaped(for_script(points)))
                    }
                }
                script { (PreEscaped(SCRIPT)) @if report.points.is_some() { (PreEscaped(POINTS)) } }
            }
        }
    }
    .into_string()
}

/// JSON whose text cannot end or open a script element or a comment. The escapes mean the same
/// characters to every JSON parser.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Title, verdict, key figures.
fn header(head: &Head, report: &Report) -> Markup {
    let mut sentences = report.headline.iter();
    html! {
        header {
            p.origin {
                b { (head.command) }
                @if let Some(study) = &head.study { " " b { (study) } }
                @if let Some(place) = &head.place {
                    @if head.study.is_some() { " in " } @else { " of " }
                    b { (place) }
                }
                @let machine = head.processors.iter().chain(&head.kernel);
                @for part in head.about.iter().chain(machine).chain([&head.started]) {
                    " \u{b7} " (part)
                }
            }
            h1 { (coded(sentences.next().map_or("There is no verdict.", String::as_str))) }
            @for sentence in sentences { p.lead { (coded(sentence)) } }
            @if let Some(question) = &report.question { p.note.question { (text(question)) } }
            @if !report.strip.is_empty() {
                div.strip { @for card in &report.strip {
                    div { h2 { (card.title) } p.big { (text(&card.big)) } p { (text(&card.text)) } }
                } }
            }
            @if !report.summary.0.is_empty() { p.note { (text(&report.summary)) } }
            @for note in &head.notes { p.note { (note) } }
        }
    }
}

fn blocks(all: &Blocks) -> Markup {
    html! { @for one in all.on(On::PAGE) { (block(one)) } }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Title(title) => html! { h3 { (text(title)) } },
        Block::Text(style, sentence) => paragraph(*style, sentence),
        Block::List(all) => html! { ul.plainly { @for one in all { li { (text(one)) } } } },
        Block::Facts(all, _) => facts(all),
        Block::Named(all, _) => html! {
            dl.named { @for (name, what) in all { dt { (name) } dd { (what) } } }
        },
        Block::Verdicts(all) => html! {
            dl.named { @for one in all {
                dt { code { (words::verdict(*one)) } } dd { (one.explain()) }
            } }
        },
        Block::Table(one) => table(one),
        Block::Chart(chart) => svg::chart(chart),
        Block::Panels(one) => panels(one),
        Block::Choice(noun, charts) => html! {
            div.choice {
                div.choose {
                    button type="button" value="-1" aria-label={ "Previous " (noun) } { "\u{2190}" }
                    select aria-label=(noun) { @for (title, _) in charts { option { (title) } } }
                    button type="button" value="1" aria-label={ "Next " (noun) } { "\u{2192}" }
                }
                @for (n, (_, all)) in charts.iter().enumerate() {
                    div hidden[n > 0] { @for chart in all { (svg::chart(chart)) } }
                }
            }
        },
        Block::Entries(all) => entries(all),
        Block::Snippet(id, lines) => html! {
            div.copy {
                pre id=(id) { (lines) }
                button type="button" hidden data-copy=(id) { "Copy" }
            }
        },
        Block::Folded(name, body) => {
            html! { details data-print { summary { (name) } (blocks(body)) } }
        }
        Block::Points(count) => html! {
            div data-closely=(count) {
                noscript { p.warn { "Choosing a point needs JavaScript." } }
            }
        },
    }
}

fn paragraph(style: Style, sentence: &Text) -> Markup {
    let (class, tone) = match style {
        Style::Lead(tone) => ("lead", tone),
        Style::Say => ("say", Tone::Plain),
        Style::Note(tone) => ("note", tone),
        Style::Plain => ("", Tone::Plain),
    };
    html! { p class={ (class) " " (toned(tone)) } { (text(sentence)) } }
}

fn toned(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Dim => "muted",
    }
}

/// Words between backticks are names of things, as everywhere.
fn coded(sentence: &str) -> Markup {
    let is_even = sentence.matches('`').count().is_multiple_of(2);
    html! { @for (n, part) in sentence.split('`').enumerate() {
        @if !is_even && n > 0 { "`" }
        @if is_even && n % 2 == 1 { code { (part) } } @else { (part) }
    } }
}

fn text(text: &Text) -> Markup {
    html! { @for span in &text.0 { @match span {
        Span::Plain(text) => (coded(text)),
        Span::Strong(text) => b { (text) },
        Span::Muted(text) => span.muted { (text) },
        Span::Code(text) => code { (text) },
        Span::Tag(tone, text) => span class={ "tag " (toned(*tone)) } { (text) },
        Span::Layer(of) => (layer(*of)),
        Span::Verdicts(all) => @for one in all.iter() {
            span.tag.warn title=(one.explain()) { (words::verdict(one)) }
        },
        Span::Link(to, text) => a href={ "#" (to) } { (text) },
    } } }
}

fn layer(layer: Layer) -> Markup {
    html! { span.layer.name style={ "--c:" (Colour::Layer(layer).css()) } { (layer.title()) } }
}

fn facts(all: &[(Text, Text)]) -> Markup {
    html! { dl.facts { @for (name, what) in all {
        div { dt { (text(name)) } dd { (text(what)) } }
    } } }
}

fn panels(all: &Panels) -> Markup {
    let legend = all.legend.iter().map(|(stroke, name)| (*stroke, name.as_str()));
    html! {
        div.legend {
            (svg::legend(legend))
            @if all.has_switch { label.switch { input type="checkbox"; " logarithmic" } }
        }
        div.panels { @for chart in &all.charts {
            @match &chart.plot {
                Plot::Lines(lines) if all.has_switch => div {
                    div.own { (svg::chart(chart)) }
                    div.log { (svg::logarithmic(chart, lines)) }
                },
                _ => (svg::chart(chart)),
            }
        } }
    }
}

fn entries(all: &[Entry]) -> Markup {
    let open = all.len().min(ENTRIES_OPEN);
    html! {
        @for one in &all[..open] { (entry(one)) }
        @if all.len() > open {
            details data-print {
                summary { (all.len() - open) " more" }
                @for one in &all[open..] { (entry(one)) }
            }
        }
    }
}

fn entry(one: &Entry) -> Markup {
    html! {
        div.finding id=[one.anchor.as_ref()] data-of=(one.of) {
            h3 { (text(&one.title)) }
            @for line in &one.text { p { (line) } }
            p.note { (text(&one.about)) }
            @if !one.facts.is_empty() { (facts(&one.facts)) }
        }
    }
}

fn table(table: &Table) -> Markup {
    let columns = table.columns_on(On::PAGE);
    let groups = Table::groups(&columns);
    let body = html! {
        thead {
            @if !groups.is_empty() {
                tr.groups { @for (group, span) in groups { th colspan=(span) { (group) } } }
            }
            tr { @for (_, column) in &columns { th.n[column.number] { (column.head) } } }
        }
        tbody { @for one in &table.rows { (row(one, &columns)) } }
    };
    match table.kind {
        TableLayout::Stack => html! { table.stack { (body) } },
        TableLayout::Tight => html! { table.stack.tight { (body) } },
        TableLayout::Broad => html! { div.scroll.bleed { table.stack.broad { (body) } } },
        TableLayout::Slim => html! { div.scroll { table { (body) } } },
        TableLayout::Wide => html! {
            div.scroll.tall.bleed tabindex="0" role="region" { table.wide data-sort { (body) } }
        },
    }
}

fn row(row: &Row, columns: &[(usize, &Column)]) -> Markup {
    let (id, title) = row.point.as_ref().map(|(id, title)| (id, title)).unzip();
    html! {
        @if let Some(group) = &row.group { tr.group { th colspan=(columns.len()) { (group) } } }
        @let tone = Some(toned(row.tone)).filter(|tone| !tone.is_empty());
        tr class=[tone] data-point=[id] title=[title] {
            @for (at, column) in columns {
                @let one = &row.cells[*at];
                @let order = one.order.or(one.number().and_then(|number| number.exact));
                @let class = if column.number { "n " } else { "" };
                @let class = format!("{class}{}", toned(one.tone));
                td class=[Some(class.trim()).filter(|class| !class.is_empty())] data-v=[order]
                    title=[tip(one)] data-label=(column.head) { (cell(one)) }
            }
        }
    }
}

/// The tooltip of a cell: its own words, or the number with every digit.
fn tip(cell: &Cell) -> Option<String> {
    let number = cell.number();
    let exact = || number.as_ref()?.exact.map(words::exact);
    let why = number.as_ref().and_then(|number| number.shown.why.clone());
    cell.tip.clone().or(why).or_else(exact)
}

fn cell(cell: &Cell) -> Markup {
    let Some(number) = cell.number() else {
        return match &cell.what {
            What::Text(found) => text(found),
            What::Verdicts(all) => text(&Text(vec![Span::Verdicts(all.clone())])),
            What::Layer(of) => layer(*of),
            _ => html! {},
        };
    };
    let is_none = matches!(cell.what, What::Interval(_, None, _) | What::RatioInterval(_, None));
    let main = number.shown.text;
    match number.shown.half.or(number.range) {
        // One piece, also where the table of a narrow screen sets pieces apart.
        Some(rest) => html! { span { (main) " " span.muted { (rest) } } },
        None if is_none => html! { span.muted { (main) } },
        None if matches!(cell.what, What::Interval(..)) => interval(&main),
        None => html! { (main) },
    }
}

/// An interval that a narrow column may break between its ends, never within one.
fn interval(words: &str) -> Markup {
    match words.split_once(" to ") {
        Some((low, high)) => html! { span { span.end { (low) " to" } " " span.end { (high) } } },
        None => html! { (words) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn text_cannot_leave_the_script_element() {
        let hostile = "</script><script>alert(1)</script><!-- ]]> \u{2028} &";
        let json = for_script(&Value::from(hostile).to_string());
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn names_between_backticks_are_code_and_a_lone_one_is_itself() {
        let of = |sentence: &str| coded(sentence).into_string();
        assert_eq!(of("`a` and <b>"), "<code>a</code> and &lt;b&gt;");
        assert_eq!(of("a ` b"), "a ` b");
    }
}
