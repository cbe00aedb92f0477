//! Answers Prometheus over HTTP.
//!
//! Invariants: bounded. At most [`CONNECTIONS_MAX`] connections are open at once, and the oldest
//! makes room for one more; each has [`PATIENCE`] in all, one request of a bounded length and one
//! answer. Only two pages exist, and they are only read. A port alone means this host only; to be
//! reached from elsewhere takes an address.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;

/// Connections that are served at once.
const CONNECTIONS_MAX: usize = 8;

/// Time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the text of the metrics at each request.
pub type BoardText = Arc<dyn Fn() -> String + Send + Sync>;

/// Answers until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at an address and answers there; port 0 takes one that is free.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn start(address: SocketAddr, text: BoardText) -> Result<Self, MetricsError> {
        let refused = |source| MetricsError::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let listening = Builder::new()
            .name("metrics".to_owned())
            .spawn(move || listen(&listener, &text, &over))
            .map_err(|source| MetricsError::Thread { source })?;
        Ok(Self { address, is_over, listening: Some(listening) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Waiting for a connection ends with one.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(if own.is_ipv4() {
                IpAddr::from(Ipv4Addr::LOCALHOST)
            } else {
                Ipv6Addr::LOCALHOST.into()
            });
        }
        let woken = TcpStream::connect_timeout(&own, Duration::from_secs(1));
        if let (Ok(_), Some(listening)) = (woken, self.listening.take()) {
            // It ends without a result, and a panic of it has been reported.
            let _ended = listening.join();
        }
    }
}

fn listen(listener: &TcpListener, text: &BoardText, is_over: &AtomicBool) {
    let open = Arc::new(OpenConnections::default());
    for stream in listener.incoming() {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let taken = stream
            .and_then(|stream| Ok((OpenConnection::take(&open, stream.try_clone()?), stream)));
        let Ok((place, stream)) = taken else {
            // Out of file descriptors, for example: it passes, but not at once.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let text = Arc::clone(text);
        let serving = Builder::new().name("metrics".to_owned()).spawn(move || {
            let _place = place;
            // A client that goes away needs no answer.
            let _served = serve(stream, &text);
        });
        // Without a thread the connection is closed, which is answer enough.
        drop(serving);
    }
}

/// The open connections with their numbers, the oldest first.
#[derive(Default)]
struct OpenConnections {
    last: AtomicUsize,
    streams: Mutex<VecDeque<(usize, TcpStream)>>,
}

impl OpenConnections {
    fn streams(&self) -> MutexGuard<'_, VecDeque<(usize, TcpStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection among the open ones, while it lasts.
struct OpenConnection {
    open: Arc<OpenConnections>,
    number: usize,
}

impl OpenConnection {
    /// A place for a new connection. Where all are taken the oldest makes room: an answer takes
    /// milliseconds, and clients that send half a request must not keep Prometheus out.
    fn take(open: &Arc<OpenConnections>, stream: TcpStream) -> Self {
        let number = open.last.fetch_add(1, Ordering::SeqCst);
        let mut streams = open.streams();
        if streams.len() >= CONNECTIONS_MAX
            && let Some((_, oldest)) = streams.pop_front()
        {
            // It may have gone by itself.
            let _closed = oldest.shutdown(Shutdown::Both);
        }
        streams.push_back((number, stream));
        drop(streams);
        Self { open: Arc::clone(open), number }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.streams().retain(|(number, _)| *number != self.number);
    }
}

/// One request, one answer.
fn serve(mut stream: TcpStream, text: &BoardText) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let asked = read(&mut stream, until)?;
    stream.set_write_timeout(Some(rest(until)?))?;
    stream.write_all(&answer(asked, || text()))?;
    stream.shutdown(Shutdown::Write)
}

fn read(stream: &mut TcpStream, until: Instant) -> io::Result<AskedPage> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        stream.set_read_timeout(Some(rest(until)?))?;
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..count]);
        head.truncate(HEAD_BYTES_MAX);
        if let Some(asked) = asked(&head) {
            return Ok(asked);
        }
    }
}

/// The time that is left.
fn rest(until: Instant) -> io::Result<Duration> {
    let rest = until.saturating_duration_since(Instant::now());
    if rest.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(rest) }
}

/// Why metrics are not served.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The address is none.
    #[error("\"{address}\" is no address to listen at; write a port such as 9187, or HOST:PORT")]
    Address {
        /// As it was given.
        address: String,
    },
    /// The system does not let the program listen there.
    #[error("cannot listen at {address}: {source}; choose another port")]
    Listen {
        /// Where.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
    /// No thread could be started.
    #[error("cannot start a thread that answers: {source}")]
    Thread {
        /// The system's answer.
        source: io::Error,
    },
}

/// The address in a text: `9187` and `:9187` are loopback, `HOST:PORT` is that.
///
/// # Errors
/// When there is no port, or the host has no address.
pub fn listen_address(text: &str) -> Result<SocketAddr, MetricsError> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| MetricsError::Address { address: text.to_owned() })
}

/// Longest head of a request, in bytes; browsers and Prometheus send less than 1 KiB.
const HEAD_BYTES_MAX: usize = 8192;

/// Most header lines.
const HEADERS_MAX: usize = 64;

/// The page that the head of a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedPage {
    /// The metrics.
    Metrics,
    /// The page that names the other one.
    Index,
    /// A page that does not exist.
    Unknown,
    /// Anything but reading.
    OtherMethod,
    /// No request.
    Malformed,
    /// More than is read.
    TooLong,
}

/// The page that the bytes so far name; nothing while more must come.
pub(crate) fn asked(head: &[u8]) -> Option<AskedPage> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() >= HEAD_BYTES_MAX => {
            return Some(AskedPage::TooLong);
        }
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => return Some(AskedPage::TooLong),
        Err(_) => return Some(AskedPage::Malformed),
    }
    if request.method != Some("GET") {
        return Some(AskedPage::OtherMethod);
    }
    let path = request.path.unwrap_or_default();
    Some(match path.split('?').next() {
        Some("/metrics") => AskedPage::Metrics,
        Some("/") => AskedPage::Index,
        _ => AskedPage::Unknown,
    })
}

/// The page at the top.
const INDEX: &str = "<!doctype html>\n<title>iostrata</title>\n\
                     <h1>iostrata watch</h1>\n<p><a href=\"/metrics\">Metrics</a></p>\n";

/// The answer in full; the connection ends with it.
pub(crate) fn answer(asked: AskedPage, metrics: impl FnOnce() -> String) -> Vec<u8> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let (status, kind, body) = match asked {
        AskedPage::Metrics => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics()),
        AskedPage::Index => ("200 OK", "text/html; charset=utf-8", INDEX.to_owned()),
        AskedPage::Unknown => ("404 Not Found", TEXT, "there are / and /metrics\n".to_owned()),
        AskedPage::OtherMethod => {
            ("405 Method Not Allowed\r\nAllow: GET", TEXT, "only GET\n".to_owned())
        }
        AskedPage::Malformed => ("400 Bad Request", TEXT, "this is no HTTP request\n".to_owned()),
        AskedPage::TooLong => {
            ("431 Request Header Fields Too Large", TEXT, "the request is too long\n".to_owned())
        }
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_for_this_host() {
        for text in ["9187", ":9187", "127.0.0.1:9187"] {
            assert_eq!(listen_address(text).unwrap().to_string(), "127.0.0.1:9187", "{text}");
        }
        assert_eq!(listen_address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert_eq!(listen_address("[::1]:9187").unwrap().to_string(), "[::1]:9187");
        for text in ["", "localhost", "127.0.0.1", "70000", "127.0.0.1:x"] {
            let told = listen_address(text).unwrap_err().to_string();
            assert!(told.contains(&format!("\"{text}\"")), "{told}");
        }
    }

    #[test]
    fn only_two_pages_are_read() {
        let of = |text: &str| asked(text.as_bytes());
        assert_eq!(of("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(AskedPage::Metrics));
        assert_eq!(of("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Some(AskedPage::Metrics));
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), Some(AskedPage::Index));
        assert_eq!(of("GET /metrics/../etc HTTP/1.1\r\n\r\n"), Some(AskedPage::Unknown));
        for method in ["POST", "HEAD", "DELETE"] {
            let text = format!("{method} /metrics HTTP/1.1\r\n\r\n");
            assert_eq!(of(&text), Some(AskedPage::OtherMethod));
        }
        assert_eq!(of("GET /metrics HTTP/1.1\r\nHost"), None);
        assert_eq!(of("\u{1}\u{2}\r\n\r\n"), Some(AskedPage::Malformed));
        assert_eq!(of(&format!("GET /{}", "a".repeat(HEAD_BYTES_MAX))), Some(AskedPage::TooLong));
        let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
        assert_eq!(of(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(AskedPage::TooLong));
    }

    #[test]
    fn the_length_is_that_of_the_body() {
        let text =
            String::from_utf8(answer(AskedPage::Metrics, || "\u{e9} 1\n".to_owned())).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nContent-Length: 5\r\n") && body.len() == 5, "{text}");
        let text = String::from_utf8(answer(AskedPage::OtherMethod, String::new)).unwrap();
        assert!(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\n"), "{text}");
    }
}
