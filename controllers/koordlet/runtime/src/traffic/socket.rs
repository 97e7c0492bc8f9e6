//! Asks the kernel by netlink and waits for its answers.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType,
    netlink::{self, SocketAddrNetlink},
    recv, sendto, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use super::message::{Message, messages, u32_at};

/// The kernel answers at once.
const TIMEOUT: Duration = Duration::from_secs(2);
const ERROR: u16 = 2;
const DONE: u16 = 3;
pub(super) const REQUEST: u16 = 1;
pub(super) const ACK: u16 = 4;
pub(super) const DUMP: u16 = 0x300;
pub(super) const REPLACE: u16 = 0x100;
pub(super) const CREATE: u16 = 0x400;

/// A connection to a part of the kernel.
pub(super) struct Socket {
    socket: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// The part that knows cards, disciplines and classes.
    pub(super) fn routes() -> io::Result<Self> {
        // It is protocol 0, the default.
        Self::open(None)
    }

    /// The part that knows nf_tables.
    pub(super) fn filter() -> io::Result<Self> {
        Self::open(Some(netlink::NETFILTER))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Self { socket, sequence: 0 })
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.socket
    }

    /// Sends messages in one datagram, those that ask for it are acknowledged.
    pub(super) fn change(&mut self, changes: Vec<Message>) -> io::Result<()> {
        let mut datagram = Vec::new();
        let mut awaited = Vec::new();
        for change in changes {
            self.sequence = self.sequence.wrapping_add(1);
            let bytes = change.finish(self.sequence);
            if super::message::u16_at(&bytes, 6).is_some_and(|flags| flags & ACK != 0) {
                awaited.push(self.sequence);
            }
            datagram.extend(bytes);
        }
        self.send(&datagram)?;
        let mut buffer = vec![0; 1 << 16];
        while !awaited.is_empty() {
            let length = self.receive(&mut buffer)?;
            for received in messages(buffer.get(..length).unwrap_or_default()) {
                if received.kind == ERROR {
                    error(received.payload)?;
                    awaited.retain(|sequence| *sequence != received.sequence);
                }
            }
        }
        Ok(())
    }

    /// The payloads of all answers to a question.
    pub(super) fn ask(&mut self, question: Message) -> io::Result<Vec<Vec<u8>>> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        self.send(&question.finish(sequence))?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = self.receive(&mut buffer)?;
            for received in messages(buffer.get(..length).unwrap_or_default()) {
                match received.kind {
                    _ if received.sequence != sequence => {}
                    DONE => return Ok(answers),
                    ERROR => {
                        error(received.payload)?;
                        return Ok(answers);
                    }
                    _ => answers.push(received.payload.to_vec()),
                }
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        sendto(&self.socket, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (length, _) = recv(&self.socket, buffer, RecvFlags::empty())?;
        Ok(length)
    }
}

/// The error of an acknowledgement; 0 is none.
fn error(payload: &[u8]) -> io::Result<()> {
    let code = u32_at(payload, 0).map_or(0, u32::cast_signed);
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.saturating_neg())) }
}
