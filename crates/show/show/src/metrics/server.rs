//! Answers Prometheus over HTTP.
//!
//! Invariant: bounded. At most [`CONNECTIONS_MAX`] connections are open at once, and the oldest
//! makes room for one more; each has [`PATIENCE`] in all, one request of a bounded length and one
//! answer.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::metrics::error::MetricsError;
use crate::metrics::request::{AskedPage, HEAD_BYTES_MAX, answer, asked};

/// Connections that are served at once.
const CONNECTIONS_MAX: usize = 8;

/// Time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the text of the metrics when they are asked for.
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
            // It ends without a result, and a panic of it has been told.
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
        // Without a thread the connection is closed, which says enough.
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
