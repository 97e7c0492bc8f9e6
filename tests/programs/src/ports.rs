//! Ports for programs that must be told where to listen.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    ops::Range,
    sync::{LazyLock, Mutex},
};

/// An address of this machine where nobody listens, and that nobody else will be given while this process runs.
///
/// A port that was free a moment ago is not enough: the system gives such a port to the next connection that any program opens, and another test may
/// find the same one. So it lies outside of what the system gives to connections, and the UDP port of the same number is held, which nobody needs
/// and every other caller sees as taken.
pub fn free() -> SocketAddr {
    static CANDIDATES: LazyLock<Range<u16>> = LazyLock::new(|| {
        let given = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        candidates(given.split_whitespace().next().and_then(|first| first.parse().ok()))
    });
    static HELD: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let Range { start, end } = CANDIDATES.clone();
    let first = start + (RandomState::new().hash_one(()) % u64::from(end - start)) as u16;
    let found = (first..end).chain(start..first).find_map(|port| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let held = UdpSocket::bind(address).ok()?;
        TcpListener::bind(address).ok()?;
        Some((address, held))
    });
    let (address, held) = found.unwrap();
    HELD.lock().unwrap().push(held);
    address
}

/// Ports that the system gives to no connection, where it leaves enough of them; `first` is the first that it gives.
fn candidates(first: Option<u16>) -> Range<u16> {
    const LOWEST: u16 = 10_000;
    const ENOUGH: u16 = 1_000;
    /// The last ones are those of `tests/parity/free-ports`, which runs beside tests and holds nothing.
    const OF_SCRIPTS: u16 = 2_000;
    match first.unwrap_or(32_768) {
        first if first >= LOWEST + ENOUGH + OF_SCRIPTS => LOWEST..first - OF_SCRIPTS,
        _ => LOWEST..u16::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nobody_else_is_given_a_port() {
        let addresses: BTreeSet<SocketAddr> = (0..50).map(|_| free()).collect();
        assert_eq!(addresses.len(), 50);
        for address in addresses {
            assert!(UdpSocket::bind(address).is_err(), "another process sees that {address} is taken");
            TcpListener::bind(address).unwrap();
        }
    }

    #[test]
    fn the_system_gives_none_of_them_to_connections() {
        assert_eq!(candidates(None), 10_000..30_768);
        assert_eq!(candidates(Some(16_000)), 10_000..14_000);
        assert_eq!(candidates(Some(1_024)), 10_000..65_535, "it leaves none");
    }
}
