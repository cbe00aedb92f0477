//! A TCP proxy before servers that listen on sockets: the stand-in for a failover, for a balancer
//! and for a proxy that answers itself.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::server::Private;

/// What a proxy that answers itself adds to the number of a connection.
const OTHER_NUMBER: u32 = 1_000;

/// A proxy that lives as long as the test.
pub struct Proxy {
    /// Its address, without a database.
    pub target: String,
    ways: Arc<Mutex<Ways>>,
}

struct Ways {
    /// Connections take these in turn.
    sockets: Vec<PathBuf>,
    taken: usize,
    renumbers: bool,
    open: Vec<(UnixStream, TcpStream)>,
}

fn socket(private: &Private) -> PathBuf {
    let target = private.target("root", "");
    let socket = target.split("socket=").nth(1).unwrap();
    socket.split('&').next().unwrap().into()
}

impl Proxy {
    /// Connections go to these servers in turn.
    pub fn before(servers: &[&Private]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("mysql://root@{}/", listener.local_addr().unwrap());
        let sockets = servers.iter().map(|one| socket(one)).collect();
        let ways = Ways { sockets, taken: 0, renumbers: false, open: Vec::new() };
        let ways = Arc::new(Mutex::new(ways));
        let shared = Arc::clone(&ways);
        thread::spawn(move || {
            for client in listener.incoming() {
                shared.lock().unwrap().take(client.unwrap());
            }
        });
        Self { target, ways }
    }

    /// The same, which reports another connection id than the server does.
    pub fn renumbering(server: &Private) -> Self {
        let proxy = Self::before(&[server]);
        proxy.ways.lock().unwrap().renumbers = true;
        proxy
    }

    /// Cuts every connection; new ones go to this server.
    pub fn switch(&self, to: &Private) {
        let mut ways = self.ways.lock().unwrap();
        ways.sockets = vec![socket(to)];
        for (server, client) in ways.open.drain(..) {
            // The other side may have ended it before.
            let _ended = (server.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
        }
    }
}

impl Ways {
    fn take(&mut self, client: TcpStream) {
        let socket = &self.sockets[self.taken % self.sockets.len()];
        self.taken += 1;
        // A server that is away refuses connections: the client's stream ends.
        let Ok(server) = UnixStream::connect(socket) else { return };
        self.open.push((server.try_clone().unwrap(), client.try_clone().unwrap()));
        let (mut up, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || {
            let _cut = std::io::copy(&mut from, &mut up);
            up.shutdown(Shutdown::Both)
        });
        let (mut down, mut to, renumbers) = (server, client, self.renumbers);
        thread::spawn(move || {
            if renumbers && renumber(&mut down, &mut to).is_err() {
                return to.shutdown(Shutdown::Both);
            }
            let _cut = std::io::copy(&mut down, &mut to);
            to.shutdown(Shutdown::Both)
        });
    }
}

/// Passes the greeting on, with another number of the connection: it stands behind the version.
fn renumber(from: &mut UnixStream, to: &mut TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    from.read_exact(&mut body)?;
    let at = 1 + body[1..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let number = u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) + OTHER_NUMBER;
    body[at..at + 4].copy_from_slice(&number.to_le_bytes());
    to.write_all(&head).and_then(|()| to.write_all(&body))
}
