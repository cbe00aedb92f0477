//! Ports of 127.0.0.1 for servers that start in a moment.
//!
//! Invariant: where there is a choice, none is one that the kernel gives to an outgoing connection.
//! A closed connection keeps its port for a minute, in which no server can listen on it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ports that the kernel gives to connections: the first and the last.
const OF_CONNECTIONS: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The lowest one to choose, above those of known services.
const PORT_MIN: u16 = 10_000;
/// How far apart two processes begin to look.
const STRIDE: u32 = 64;

/// Ports that are free at this moment, no two of them equal. Processes that look at the same time
/// begin at different places, so that they find different ones.
///
/// # Errors
/// Where too few are free.
pub(super) fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let choice =
        fs::read_to_string(OF_CONNECTIONS).map_or_else(|_| Vec::new(), |range| choice(&range));
    let begin = process::id().wrapping_mul(STRIDE);
    // All are held until the last is found.
    let mut held = Vec::new();
    for _ in 0..choice.len() {
        if held.len() == count {
            break;
        }
        let tried = begin.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = choice[tried as usize % choice.len()];
        held.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
    }
    while held.len() < count {
        held.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    }
    held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// The ports outside of the range that the kernel's file holds: `first last`. None where it is not
/// understood.
fn choice(of_connections: &str) -> Vec<u16> {
    let bounds = of_connections.split_whitespace().map(|bound| bound.parse().ok());
    match bounds.collect::<Option<Vec<u16>>>().as_deref() {
        Some(&[first, last]) => {
            (PORT_MIN..=u16::MAX).filter(|port| !(first..=last).contains(port)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_are_equal_and_none_is_taken_or_of_connections() {
        let taken = free_ports(1).unwrap()[0];
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).unwrap();
        let all = choice(&fs::read_to_string(OF_CONNECTIONS).unwrap());
        let found: Vec<u16> = (0..20).flat_map(|_| free_ports(9).unwrap()).collect();
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 180, "{found:?}");
        assert!(!found.contains(&taken), "{found:?}");
        assert!(all.is_empty() || found.iter().all(|port| all.contains(port)), "{found:?}");
    }

    #[test]
    fn the_range_of_connections_is_left_out() {
        let outside = choice("32768\t60999\n");
        assert_eq!(outside.len(), 32_768 - 10_000 + 65_535 - 60_999);
        assert!(!outside.contains(&32_768) && !outside.contains(&60_999));
        assert!(outside.contains(&32_767) && outside.contains(&61_000));
        assert!(choice("1024 65535").is_empty());
        assert_eq!(choice("9000 9999").len(), 55_536);
        for unknown in ["", "1", "a b", "1 2 3"] {
            assert!(choice(unknown).is_empty(), "{unknown}");
        }
    }
}
