//! A listener that speaks the beginning of the protocol, as who wants a password would.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// Its reply once a client has answered its greeting.
#[derive(Clone, Debug)]
pub enum Answer {
    /// `caching_sha2_password` wants the whole password; these bytes are its RSA key.
    WholePassword(Vec<u8>),
    /// An error with this message.
    Error(String),
    /// The client is to log in by this plugin.
    Plugin(String),
}

/// COM_QUIT.
const FAREWELL: [u8; 1] = [1];

/// A listener for one client.
pub struct Listener {
    pub port: u16,
    packets: JoinHandle<Vec<Vec<u8>>>,
}

impl Listener {
    pub fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let packets = thread::spawn(move || {
            // A client that prefers encryption sends nothing the first time, and connects once more
            // without it.
            let clients = (0..2).map(|_| listener.accept().unwrap().0);
            let mut all = clients.map(|client| served(client, &answer));
            all.find(|packets| !packets.is_empty()).unwrap_or_default()
        });
        Self { port, packets }
    }

    /// What the client sent, without the heads of the packets and its farewell.
    pub fn packets(self) -> Vec<Vec<u8>> {
        self.packets.join().unwrap()
    }
}

fn served(mut client: TcpStream, answer: &Answer) -> Vec<Vec<u8>> {
    // Version 8.0.36 without TLS, and the plugin that is the default there.
    let mut greeting = b"\x0a8.0.36\0\x07\0\0\x0012345678\0\x0f\xa2\xff\x02\0\x0f\0\x15".to_vec();
    greeting.extend([0; 10]);
    greeting.extend(b"901234567890\0caching_sha2_password\0");
    let mut packets = Vec::new();
    send(&mut client, 0, &greeting);
    while let Some((number, packet)) = received(&mut client) {
        if packet == FAREWELL {
            break;
        }
        let is_first = packets.is_empty();
        packets.push(packet);
        let said = match answer {
            Answer::WholePassword(_) if is_first => vec![1, 4],
            Answer::WholePassword(key) => [&[1], key.as_slice()].concat(),
            Answer::Error(text) => [b"\xff\x15\x04#28000", text.as_bytes()].concat(),
            Answer::Plugin(name) => {
                [b"\xfe", name.as_bytes(), b"\x0012345678901234567890\0"].concat()
            }
        };
        send(&mut client, number + 1, &said);
    }
    packets
}

fn send(client: &mut TcpStream, number: u8, packet: &[u8]) {
    let [low, middle, high, _] = (packet.len() as u32).to_le_bytes();
    // The client may be gone, which is what is looked for.
    let _ = client.write_all(&[&[low, middle, high, number], packet].concat());
}

fn received(client: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    client.read_exact(&mut head).ok()?;
    let mut packet = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    client.read_exact(&mut packet).ok()?;
    Some((head[3], packet))
}
