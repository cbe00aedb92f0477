//! Metrics over HTTP, as Prometheus and as a rude client ask for them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use iostrata_metrics::{MetricsServer, listen_address};
use serde_json::Value;

use crate::{board, is_installed};

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
    assert!(answer.contains("\niostrata_target_up{target=\"mysql://b@127.0.0.1:3391/tpcc\"} 1\n"));
    assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").contains("href=\"/metrics\""));
    assert!(ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(8192));
    assert!(ask(address, &long[..8192]).starts_with("HTTP/1.1 431 "));
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn clients_that_say_nothing_do_not_keep_others_out_for_long() {
    let server = server();
    let address = server.address();
    let silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    // All places are taken: whoever comes now is sent away, not left waiting.
    let mut ninth = TcpStream::connect(address).unwrap();
    assert!(matches!(ninth.read(&mut [0; 16]), Ok(0) | Err(_)));
    drop(silent);
    let answered = (0..100).any(|_| {
        sleep(Duration::from_millis(50));
        let mut stream = TcpStream::connect(address).unwrap();
        let asked = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let mut answer = String::new();
        asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.contains("200 OK")
    });
    assert!(answered, "the places are free again");
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

fn query(port: u16, expr: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!(
        "GET /api/v1/query?query={expr} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let found: Value = serde_json::from_str(body).ok()?;
    found["data"]["result"].get(0).map(|first| first["value"][1].clone())
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
        query(port, limit)
    });
    assert_eq!(found, Some(Value::from("84216915")));
    // What vanished is down, and has no figures.
    assert_eq!(query(port, "count(iostrata_target_up==0)"), Some(Value::from("1")));
    assert_eq!(query(port, "count(iostrata_dirty_pages)"), Some(Value::from("2")));
}
