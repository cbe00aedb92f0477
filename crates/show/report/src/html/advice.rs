//! What to change: a fragment to copy for the server, the rest one by one, each with risk and undo.

use iostrata_run::{Advice, ProbeDocument, Risk};
use maud::{Markup, html};

use crate::words;

/// Where the settings of the server stand.
const SERVER: &str = "my.cnf";

/// Every advice, or that nothing need change.
pub(crate) fn section(probe: &ProbeDocument) -> Markup {
    let server: Vec<&Advice> =
        probe.advice.iter().filter(|advice| advice.where_.starts_with(SERVER)).collect();
    html! {
        @if probe.advice.is_empty() { p.lead { "Nothing was advised." } }
        @if !server.is_empty() {
            h3 { "For the server" }
            div.copy {
                pre id="advice-my-cnf" { (fragment(&server)) }
                button type="button" hidden data-copy="advice-my-cnf" { "Copy" }
            }
        }
        @for advice in &probe.advice { (one(advice)) }
    }
}

/// The lines as they stand in the server's file.
pub(crate) fn fragment(server: &[&Advice]) -> String {
    let mut text = String::from("[mysqld]\n");
    for advice in server {
        text.push_str(&format!("{} = {}\n", one_line(&advice.setting), one_line(&advice.value)));
    }
    text
}

/// A value cannot bring lines of its own into a file that is copied.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

fn one(advice: &Advice) -> Markup {
    html! {
        div.finding data-advice=(advice.setting) {
            h3 { code { (advice.setting) " = " (advice.value) } }
            p { (advice.text) }
            p.note {
                span.tag { (advice.where_) }
                @if let Some(default) = &advice.default { span.tag { "default " (default) } }
                span.tag.good[advice.risk == Risk::None].warn[advice.risk != Risk::None] {
                    (words::risk(advice.risk))
                }
                @for id in &advice.why { a href={ "#finding-" (id) } { (id) } " " }
            }
            p.note { "To undo: " (advice.undo) }
        }
    }
}
