//! The report in a real browser.

use std::path::Path;

use crate::chromium::Browser;

#[test]
fn preview() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = Path::new("/tmp/lab/report");
    for name in ["probe", "io", "clean"] {
        for (w, h, phone, dark) in [(1280, 900, false, false), (1280, 900, false, true), (390, 844, true, false)] {
            browser.screen(w, h, phone, dark);
            browser.open(&dir.join(format!("{name}.html")));
            let full = browser.value("document.documentElement.scrollHeight").as_u64().unwrap() as u32;
            let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap() as u32;
            eprintln!("{name} {w} {full} wide {wide}");
            let step = if phone { 1700 } else { 1500 };
            for (i, top) in (0..full).step_by(step as usize).enumerate() {
                let png = browser.picture(top, w, step.min(full - top));
                std::fs::write(dir.join(format!("{name}-{w}-{}-{i}.png", if dark { "dark" } else { "light" })), png).unwrap();
            }
            for e in &browser.events { let m = e["method"].as_str().unwrap_or(""); if m.contains("exception") || m.contains("console") || m.contains("Log.") || m.contains("requestWill") { eprintln!("{m} {} {}", e["params"]["request"]["url"], e["params"]["entry"]); } }
        }
    }
    browser.screen(1280, 900, false, true);
    browser.open(&dir.join("probe.html"));
    std::fs::write(dir.join("probe.pdf"), browser.paper()).unwrap();
}
