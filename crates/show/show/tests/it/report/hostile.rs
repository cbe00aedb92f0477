//! Text from outside stays text, wherever it lands.

use iostrata_show::report::{html, markdown, terminal};

use crate::report::chromium::Browser;
use crate::report::complete::with_texts;
use crate::report::sample::{self, Sample};

/// Ends elements, attributes, scripts, comments and JSON strings; opens others; fills templates.
const HOSTILE: &str = "</script><script>hacked=1</script><img src=x onerror=hacked=2>\"><svg \
    onload=hacked=3>'--><b>%{y}{{x}}</b><a href=\"javascript:hacked=4\">&lt;i&gt;\u{2028}\\";

fn hostile() -> Sample {
    let mut sample = sample::probe();
    with_texts(&mut sample, |path, old| {
        // Names tie rungs to curves; they are changed everywhere alike.
        if path.ends_with("/unit") { old.to_owned() } else { format!("{old}{HOSTILE}") }
    });
    for event in &mut sample.events {
        if let iostrata_run::Event::Replicate(replicate) = event {
            replicate.point.id.push_str(HOSTILE);
            replicate.point.title.push_str(HOSTILE);
            replicate.point.block.push_str(HOSTILE);
            replicate.streams[0].name.push_str(HOSTILE);
        }
    }
    for point in sample.manifest.plan.iter_mut().flatten() {
        point.id.push_str(HOSTILE);
        point.block.push_str(HOSTILE);
    }
    sample.manifest.arguments.push(HOSTILE.into());
    sample.manifest.program_version.push_str(HOSTILE);
    sample.notes.push(HOSTILE.into());
    sample
}

#[test]
fn markup_is_escaped_in_the_page() {
    let page = html(&hostile().view());
    assert!(page.matches("&lt;script&gt;hacked").count() > 100);
    assert!(!page.contains("<script>hacked") && !page.contains("<img src=x"));
    assert!(!page.contains("<svg onload") && !page.contains("<b>%{y}"));
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn a_browser_runs_nothing_of_it() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.html");
    std::fs::write(&path, html(&hostile().view())).unwrap();
    browser.screen(1280, 900, false, false);
    browser.open(&path);
    assert!(browser.value("typeof hacked").as_str() == Some("undefined"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(
        browser.value("document.querySelectorAll('img, main script, main b > i').length"),
        0
    );
    assert_eq!(
        browser.value(
            "[...document.querySelectorAll('a')].filter(a => a.protocol !== 'file:').length"
        ),
        0
    );
    let shown = browser.value(
        "[...document.querySelectorAll('figure .name')].some(t => \
         t.textContent.includes('</script><script>hacked=1'))",
    );
    assert_eq!(shown, true, "chart labels show the text as it is");
    let hover = browser.hover("losses", 0, 0);
    assert!(hover.contains("%{y}{{x}}</b>") && hover.contains("&lt;i&gt;"), "{hover}");
    let time = "document.querySelector('#time figure').id.slice(6)";
    let time = browser.value(time).as_str().unwrap().to_owned();
    let hover = browser.hover(&time, 0, 0);
    assert!(hover.contains("%{y}{{x}}</b>"), "{hover}");
}

#[test]
fn markdown_and_terminal_stay_text() {
    let sample = hostile();
    let text = markdown(&sample.view());
    let outside_code = text.lines().filter(|line| !line.contains('`'));
    for line in outside_code {
        assert!(!line.contains("<script>") && !line.contains(" <img"), "{line}");
    }
    let mut sample = sample::probe();
    with_texts(&mut sample, |_, old| format!("{old}\u{1b}]0;x\u{7}\u{1b}[2J\r\u{202e}"));
    for colour in [false, true] {
        let text = terminal(&sample.view(), 100, colour);
        assert!(!text.contains(['\u{7}', '\r', '\u{202e}']) && !text.contains("\u{1b}[2J"));
        assert_eq!(text.contains('\u{1b}'), colour);
    }
}
