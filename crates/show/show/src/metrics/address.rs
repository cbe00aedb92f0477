//! Where metrics are served.
//!
//! Invariant: a port alone means this host only; to be reached from elsewhere takes an address.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use crate::metrics::error::MetricsError;

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
}
