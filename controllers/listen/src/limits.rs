//! The limits, and their defaults.

use std::time::Duration;

/// How many connections there may be, and how long each stage of one may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most open connections. One more closes the connection that matters least of the peer that has most: one
    /// without a request so far, else one that idles, else one whose requests are still arriving; of several the
    /// oldest. A request that is being answered is never cut; if all are, the new connection is refused.
    pub connections_max: usize,
    /// Most open connections of one address (one /64 network of IPv6).
    pub connections_per_peer_max: usize,
    /// The TLS handshake.
    pub handshake_max: Duration,
    /// The head of a request: from the start of the connection or, with HTTP/1.1, from its first byte.
    pub header_max: Duration,
    /// The body of a request, from its head.
    pub body_max: Duration,
    /// Between two requests. Longer than Go's clients keep idle connections (90 s), so that they close first.
    pub idle_max: Duration,
    /// How long a client may leave a response unread. A response that has nothing to send, as a quiet watch, may last.
    pub write_stall_max: Duration,
    /// How often an HTTP/2 client is pinged.
    pub ping_every: Duration,
    /// How long it may take to answer a ping.
    pub ping_max: Duration,
    /// Most requests at once on an HTTP/2 connection.
    pub streams_max: u32,
    /// How long running requests may take after the program began to stop.
    pub drain_max: Duration,
    /// The bodies of all requests in flight.
    pub bodies: BodyLimits,
}

/// How much of request bodies is held in memory.
#[derive(Clone, Debug)]
pub struct BodyLimits {
    /// Bytes of all bodies, from their arrival until their requests are answered.
    pub bytes_max: usize,
    /// How long a body waits for room; then its request is refused.
    pub wait_max: Duration,
    /// A body that arrives for longer than this is slow. Slow bodies may hold half of the bytes as long as others need
    /// the rest; those beyond are given up, the slowest of the peer with the most bytes first.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            connections_per_peer_max: 3072,
            handshake_max: Duration::from_secs(10),
            header_max: Duration::from_secs(10),
            body_max: Duration::from_secs(30),
            idle_max: Duration::from_mins(2),
            write_stall_max: Duration::from_secs(30),
            ping_every: Duration::from_secs(30),
            ping_max: Duration::from_secs(15),
            streams_max: 1000,
            drain_max: Duration::from_secs(5),
            bodies: BodyLimits::default(),
        }
    }
}

impl Default for BodyLimits {
    fn default() -> Self {
        // With what pieces, buffers of connections and the allocator add, a flood stays near 64 MiB.
        Self { bytes_max: 48 * 1024 * 1024, wait_max: Duration::from_secs(2), patience: Duration::from_millis(500) }
    }
}

impl Limits {
    /// Few connections with short requests, as metrics and health have.
    pub fn small() -> Self {
        Self {
            connections_max: 256,
            connections_per_peer_max: 192,
            streams_max: 100,
            drain_max: Duration::ZERO,
            bodies: BodyLimits { bytes_max: 1024 * 1024, ..BodyLimits::default() },
            ..Self::default()
        }
    }

    /// Takes no more than three quarters of the files that the process may open: the rest is for its other work.
    pub(crate) fn within_open_files(mut self, open_files: Option<u64>) -> Self {
        let share = open_files.and_then(|files| usize::try_from(files).ok()).map_or(usize::MAX, |files| files / 4 * 3);
        self.connections_max = self.connections_max.min(share).max(1);
        self.connections_per_peer_max = self.connections_per_peer_max.min(self.connections_max).max(1);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_other_work() {
        let within = |files| {
            let limits = Limits::default().within_open_files(files);
            (limits.connections_max, limits.connections_per_peer_max)
        };
        assert_eq!(within(Some(1024)), (768, 768));
        assert_eq!(within(Some(20_000)), (4096, 3072));
        assert_eq!(within(None), (4096, 3072));
    }
}
