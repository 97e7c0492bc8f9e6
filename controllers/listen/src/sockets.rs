//! Opens ports: on both address families where every address is meant.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Connections that wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address asked for.
    pub address: SocketAddr,
    /// What the system said.
    pub source: io::Error,
}

impl BindError {
    /// Whether another program has the port.
    pub fn is_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// Opens a port. `[::]` takes connections of IPv4 too, and means `0.0.0.0` on a machine without IPv6. Port 0 takes any
/// free one. Must be called within a tokio runtime.
pub fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let opened = match open(address) {
        Err(error) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && error.kind() != io::ErrorKind::AddrInUse => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        opened => opened,
    };
    opened.map_err(|source| BindError { address, source })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // A port whose last connections are still closing can be opened again.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn every_address_means_both_families() {
        let listener = bind((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        if listener.local_addr().unwrap().is_ipv6() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
        } else {
            // Not through the print macros: the test harness captures their output.
            let _ = writeln!(std::io::stderr(), "SKIPPED addresses of both families: this machine has no IPv6");
        }
    }

    #[tokio::test]
    async fn a_port_in_use_is_an_error_of_its_own() {
        let first = bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = first.local_addr().unwrap();
        let error = bind(address).unwrap_err();
        assert!(error.is_in_use(), "{error}");
        assert!(bind((Ipv6Addr::UNSPECIFIED, address.port()).into()).is_err(), "IPv4 of the port is taken");
    }
}
