//! A browser without a window, driven through its debugging pipe.
//!
//! The browser reads commands on descriptor 3 and answers on descriptor 4, JSON ended by a zero
//! byte. A shell with two named pipes puts them there, so that no library is needed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A running browser with one page.
pub struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    last_id: u64,
    /// Every event since the start: console, errors, requests.
    pub events: Vec<Value>,
    _dir: TempDir,
}

const START: &str = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync \
    --hide-scrollbars --user-data-dir=\"$1/profile\" --remote-debugging-pipe about:blank \
    3<\"$1/to\" 4>\"$1/from\" 2>/dev/null";

/// Where the browser is, if it is installed.
fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}

impl Browser {
    /// A browser, or nothing with the reason on stderr.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("skipped: no chromium in PATH; install Debian's chromium to run this test");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        for pipe in ["to", "from"] {
            assert!(Command::new("mkfifo").arg(dir.path().join(pipe)).status().unwrap().success());
        }
        let process =
            Command::new("sh").args(["-c", START]).arg(program).arg(dir.path()).spawn().unwrap();
        // Opened in the order in which the shell opens its ends.
        let to = OpenOptions::new().write(true).open(dir.path().join("to")).unwrap();
        let from = BufReader::new(File::open(dir.path().join("from")).unwrap());
        let session = String::new();
        let mut browser =
            Self { process, to, from, session, last_id: 0, events: vec![], _dir: dir };
        let targets = browser.call("Target.getTargets", json!({}));
        let pages = targets["targetInfos"].as_array().unwrap();
        let page = pages.iter().find(|target| target["type"] == "page").unwrap();
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        browser.session = session.as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its answer; events that come before it are kept.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": params });
        if !self.session.is_empty() {
            command["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let mut message = Vec::new();
            self.from.read_until(0, &mut message).unwrap();
            assert!(message.pop() == Some(0), "the browser is gone");
            let message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] != self.last_id {
                self.events.push(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    /// The value of an expression in the page; promises are waited for.
    pub fn value(&mut self, expression: &str) -> Value {
        let ask = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true
        });
        let answer = self.call("Runtime.evaluate", ask);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Opens a report and waits until its charts are drawn.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        while self.value("document.documentElement?.dataset.charts === 'ready'") != true {
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Sets the size of the page and whether it is light or dark.
    pub fn screen(&mut self, width: u32, height: u32, phone: bool, dark: bool) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let theme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The text that a chart shows when the pointer is on a point of a line, or on a slice of it.
    pub fn hover(&mut self, chart: &str, line: usize, point: usize) -> String {
        let text = self.value(&format!(
            "(() => {{ const chart = document.getElementById('chart-{chart}'); \
               const mark = chart.querySelector('[data-at=\"{line}.{point}\"]'); \
               const slices = chart.querySelectorAll('polyline[data-width]')[{line}]; \
               const place = (mark || slices).getBoundingClientRect(); \
               let [x, y] = [place.left + place.width / 2, place.top + place.height / 2]; \
               if (!mark) {{ \
                 const at = slices.points[{point}], to = slices.getScreenCTM(); \
                 [x, y] = [to.a * (at.x + 0.5) + to.e, to.d * at.y + to.f]; }} \
               const on = mark || slices; \
               on.dispatchEvent(new PointerEvent('pointermove', \
                 {{ bubbles: true, clientX: x, clientY: y }})); \
               const tip = document.querySelector('.tip'); \
               return tip.hidden ? '' : tip.textContent; }})()"
        ));
        text.as_str().unwrap().to_owned()
    }

    /// What the page should not have done: errors, console messages, requests beyond itself.
    pub fn complaints(&mut self) -> Vec<String> {
        // An answer that comes later than every event so far.
        self.value("1");
        let complaint = |event: &Value| {
            let method = event["method"].as_str()?;
            let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
            let inside = url.starts_with("file://") || url.starts_with("data:");
            let bad = method.starts_with("Runtime.exception")
                || method.starts_with("Runtime.consoleAPI")
                || method.starts_with("Log.entryAdded")
                || (method == "Network.requestWillBeSent" && !inside);
            bad.then(|| event.to_string())
        };
        self.events.iter().filter_map(complaint).collect()
    }

    /// Comes near to the parts that are drawn only then, and waits for them.
    pub fn unfold_closely(&mut self) {
        let near = "for (const one of document.querySelectorAll('[data-closely]')) \
                    { one.scrollIntoView(); await new Promise(done => setTimeout(done, 700)); }";
        self.value(&format!("(async () => {{ {near} scrollTo(0, 0); }})()"));
        self.settle();
    }

    /// Waits until what was set in motion has ended.
    pub fn settle(&mut self) {
        self.value("new Promise(done => setTimeout(done, 500))");
    }

    /// The page as paper would have it, on the screen.
    pub fn on_paper(&mut self) {
        self.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
        self.value("void dispatchEvent(new Event('beforeprint'))");
        self.settle();
    }

    /// A picture of a part of the page, in pixels from its top.
    pub fn picture(&mut self, top: u32, width: u32, height: u32) -> Vec<u8> {
        let clip = json!({ "x": 0, "y": top, "width": width, "height": height, "scale": 1 });
        let options = json!({ "captureBeyondViewport": true, "clip": clip });
        decode(&self.call("Page.captureScreenshot", options)["data"])
    }

    /// The page as it is printed.
    pub fn paper(&mut self) -> Vec<u8> {
        let options = json!({ "printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69 });
        decode(&self.call("Page.printToPDF", options)["data"])
    }
}

fn decode(data: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap()).unwrap()
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session.clear();
        self.last_id += 1;
        let close = json!({ "id": self.last_id, "method": "Browser.close" });
        if self.to.write_all(format!("{close}\0").as_bytes()).is_err() {
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}
