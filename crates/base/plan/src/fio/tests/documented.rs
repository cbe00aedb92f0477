//! docs/fio.md documents every option as the catalogue has it. `UPDATE_DOCS=1` regenerates it.

use std::fmt::Write;
use std::path::Path;

use crate::fio::catalogue::{FioOption, OptionEffect, areas};

const BEGIN: &str = "<!-- options -->\n";
const END: &str = "<!-- end of options -->\n";

fn row(entry: &FioOption) -> String {
    let names: Vec<String> = entry.names().map(|name| format!("`{name}`")).collect();
    let (effect, text) = match entry.effect {
        OptionEffect::Changes(what) => ("changes", what),
        OptionEffect::Warned(why) => ("ignored", why),
        OptionEffect::Refused(why) => ("refused", why),
    };
    let silent: Vec<String> = entry.neutral.iter().map(|value| format!("`{value}`")).collect();
    let text = text.replace('|', "\\|");
    format!("| {} | {effect} | {text} | {} |", names.join(", "), silent.join(" "))
}

fn tables() -> String {
    let mut text = String::new();
    for (title, entries) in areas() {
        let _never_fails = write!(
            text,
            "\n### {title}\n| option | here | effect, or reason | accepted silently |\n|---|---|---|---|\n"
        );
        for entry in entries {
            let _never_fails = writeln!(text, "{}", row(entry));
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_page_lists_every_option_with_its_effect() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/fio.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        let page = format!("{before}{BEGIN}{}{END}{after}", tables());
        std::fs::write(&path, page).unwrap();
        return;
    }
    assert!(listed == tables(), "run UPDATE_DOCS=1 cargo test -p iostrata-plan documented");
}
