//! Metrics over HTTP, as Prometheus and as a rude client request them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use iostrata_show::metrics::{MetricsServer, listen_address};
use serde_json::Value;

use crate::metrics::{board, is_installed};

fn server() -> MetricsServer {
    let board = board();
    MetricsServer::start(listen_address("0").unwrap(), Arc::new(move || board.text())).unwrap()
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_served_and_nothing_else() {
    let server = server();
    let address = server.address();
    assert!(address.ip().is_loopback());
    let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\niostrata_target_up{target=\"mysql://127.0.0.1:3391/tpcc\"} 1\n"));
    assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").contains("href=\"/metrics\""));
    assert!(ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(8192));
    assert!(ask(address, &long[..8192]).starts_with("HTTP/1.1 431 "));
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "the port is closed");
}

#[test]
fn clients_that_send_half_a_request_keep_no_other_out() {
    let server = server();
    let address = server.address();
    let half: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metr").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    }
    // The oldest made room: it was closed without an answer.
    let mut oldest = &half[0];
    assert!(matches!(oldest.read(&mut [0; 16]), Ok(0) | Err(_)));
    let mut newest = &half[7];
    newest.write_all(b"ics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    newest.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The results of an expression; none while Prometheus is not ready.
fn query(port: u16, expr: &str) -> Option<Vec<Value>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let encoded: String = expr.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let request = format!(
        "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let found: Value = serde_json::from_str(body).ok()?;
    assert_eq!(found["status"], "success", "{expr}: {found}");
    found["data"]["result"].as_array().cloned()
}

/// The one value of an expression.
fn value(port: u16, expr: &str) -> Option<Value> {
    query(port, expr)?.first().map(|first| first["value"][1].clone())
}

/// The expressions of the shipped dashboard, with Grafana's words filled in.
fn dashboard() -> Vec<String> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../contrib/grafana/iostrata-dashboard.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let expr = |target: &Value| {
        let text = target["expr"].as_str().unwrap();
        text.replace("$target", ".*").replace("$__rate_interval", "1m")
    };
    targets.map(expr).collect()
}

#[test]
fn prometheus_scrapes_it() {
    if !is_installed("prometheus") {
        return;
    }
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("prometheus.yml");
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../contrib/prometheus");
    let text = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: [{rules}/iostrata-alerts.yml]\n\
         scrape_configs:\n  - job_name: iostrata\n    static_configs: [{{targets: [\"{}\"]}}]\n",
        server.address()
    );
    fs::write(&config, text).unwrap();
    let port = free_port();
    let _running = Running(
        Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let limit = "max(iostrata_checkpoint_age_limit_bytes)";
    let found = (0..300).find_map(|_| {
        sleep(Duration::from_millis(200));
        value(port, limit)
    });
    assert_eq!(found, Some(Value::from("84216915")));
    // What vanished is down, and has no figures.
    assert_eq!(value(port, "count(iostrata_target_up==0)"), Some(Value::from("1")));
    assert_eq!(value(port, "count(iostrata_dirty_pages)"), Some(Value::from("2")));
    // A rate takes two scrapes. Nothing stalls meanwhile.
    for expr in dashboard().iter().filter(|expr| !expr.ends_with("> 0")) {
        let has_points = || !query(port, expr).unwrap().is_empty();
        let pause = |_: &i32| sleep(Duration::from_millis(200));
        assert!(has_points() || (0..300).inspect(pause).any(|_| has_points()), "{expr}: nothing");
    }
}
