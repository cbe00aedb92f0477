//! The first packet of a database server: whether it is ready for clients.
//!
//! Invariant: only bytes are looked at, nothing is sent. A greeting is protocol version 10 with the
//! server's version; all else is no server, or one that turns clients away.

use std::io::Read;

/// Longest first packet that is read.
const PACKET_BYTES_MAX: usize = 4096;
/// First byte of a greeting.
const PROTOCOL_10: u8 = 10;
/// First byte of a refusal.
const REFUSAL: u8 = 0xff;

/// What came from a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Nobody listens, or nothing that was said is known.
    Silent,
    /// A server, ready to let clients in.
    Ready {
        /// Its version, as it says.
        version: String,
    },
    /// A server that turns clients away; what it said.
    Refused(String),
}

impl Greeting {
    /// Reads the first packet. One that breaks off is none.
    pub(crate) fn read(from: &mut impl Read) -> Self {
        let mut header = [0; 4];
        if from.read_exact(&mut header).is_err() {
            return Self::Silent;
        }
        let bytes =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        let mut packet = vec![0; bytes.min(PACKET_BYTES_MAX)];
        match from.read_exact(&mut packet) {
            Ok(()) => Self::of_packet(&packet),
            Err(_) => Self::Silent,
        }
    }

    fn of_packet(packet: &[u8]) -> Self {
        match packet {
            [PROTOCOL_10, rest @ ..] => match rest.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    Self::Ready { version: String::from_utf8_lossy(&rest[..end]).into_owned() }
                }
                None => Self::Silent,
            },
            // Its number in two bytes, then the words.
            [REFUSAL, _, _, words @ ..] => {
                Self::Refused(String::from_utf8_lossy(words).trim().to_owned())
            }
            _ => Self::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Greeting {
        Greeting::read(&mut bytes)
    }

    #[test]
    fn a_greeting_names_the_version() {
        let greeting = b"\x10\0\0\x00\x0a9.7.4\0\x08\0\0\0abcde";
        assert_eq!(read(greeting), Greeting::Ready { version: "9.7.4".to_owned() });
        for end in 0..greeting.len() {
            assert_eq!(read(&greeting[..end]), Greeting::Silent, "{end} bytes");
        }
    }

    #[test]
    fn a_refusal_is_kept_and_the_rest_is_nothing() {
        let refusal = b"\x17\0\0\0\xff\x10\x04Too many connections";
        assert_eq!(read(refusal), Greeting::Refused("Too many connections".to_owned()));
        for other in
            [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x0a", b"HTTP/1.1 400\r\n", b"\x02\0\0\0\x09\0"]
        {
            assert_eq!(read(other), Greeting::Silent, "{other:?}");
        }
    }
}
