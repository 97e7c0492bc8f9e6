//! The open connections: which stage each has reached, and which is closed when there are too many.
//!
//! A state machine without sockets or a clock. Its owner closes the connections that it names.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use tokio::time::Instant;

use crate::Limits;

/// Whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    /// An IPv4 address, or the network of an IPv6 address: one machine may use a whole /64.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
        })
    }
}

pub(crate) type Id = u64;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    /// The head of a request is due.
    Head,
    /// All requests so far are answered.
    Idle,
    /// `arriving` of the `open` requests have not been received whole.
    Requests {
        open: usize,
        arriving: usize,
    },
}

#[derive(Debug)]
struct Connection {
    peer: Peer,
    stage: Stage,
    since: Instant,
    has_served: bool,
}

/// Which connection is closed first, among those of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    NoRequestYet,
    Idle,
    Arriving,
}

impl Connection {
    /// None while a request is being answered.
    fn worth(&self) -> Option<Worth> {
        match self.stage {
            Stage::Handshake | Stage::Head | Stage::Idle if !self.has_served => Some(Worth::NoRequestYet),
            Stage::Handshake | Stage::Head | Stage::Idle => Some(Worth::Idle),
            Stage::Requests { open, arriving } => (open == arriving).then_some(Worth::Arriving),
        }
    }
}

/// What happens with a new connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is served; another may have to be closed, which no longer counts.
    Served { id: Id, instead_of: Option<Id> },
    /// Every connection that could be closed for it is being answered.
    Refused,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    open: BTreeMap<Id, Connection>,
    peers: BTreeMap<Peer, OfPeer>,
    next: Id,
}

/// The connections of a peer.
#[derive(Debug, Default)]
struct OfPeer {
    count: usize,
    /// Those that may be closed, the first of them first.
    closable: BTreeSet<(Worth, Instant, Id)>,
}

impl Table {
    pub(crate) fn admit(&mut self, limits: &Limits, peer: Peer, now: Instant) -> Admission {
        let own = self.peers.get(&peer).map_or(0, |own| own.count);
        let instead_of = if own >= limits.connections_per_peer_max {
            self.least(Some(peer))
        } else if self.open.len() >= limits.connections_max {
            self.least(None)
        } else {
            return Admission::Served { id: self.insert(peer, now), instead_of: None };
        };
        let Some(closed) = instead_of else { return Admission::Refused };
        self.remove(closed);
        Admission::Served { id: self.insert(peer, now), instead_of }
    }

    fn insert(&mut self, peer: Peer, now: Instant) -> Id {
        self.next += 1;
        let connection = Connection { peer, stage: Stage::Handshake, since: now, has_served: false };
        let own = self.peers.entry(peer).or_default();
        own.count += 1;
        own.closable.extend(connection.worth().map(|worth| (worth, now, self.next)));
        self.open.insert(self.next, connection);
        self.next
    }

    /// The connection to close first, of one peer or of the one with the most connections.
    pub(crate) fn least(&self, of: Option<Peer>) -> Option<Id> {
        let first = |own: &OfPeer| own.closable.first().copied();
        let least = if let Some(peer) = of {
            self.peers.get(&peer).and_then(first)
        } else {
            let peers = self.peers.values().filter_map(|own| Some((Reverse(own.count), first(own)?)));
            peers.min().map(|(_, least)| least)
        };
        least.map(|(_, _, id)| id)
    }

    /// Forgets a connection. Nothing happens if it was closed for another.
    pub(crate) fn remove(&mut self, id: Id) {
        let Some(connection) = self.open.remove(&id) else { return };
        let Some(own) = self.peers.get_mut(&connection.peer) else { return };
        own.count -= 1;
        if let Some(worth) = connection.worth() {
            own.closable.remove(&(worth, connection.since, id));
        }
        if own.count == 0 {
            self.peers.remove(&connection.peer);
        }
    }

    fn enter(&mut self, id: Id, now: Instant, change: impl FnOnce(&mut Connection)) {
        let Some(connection) = self.open.get_mut(&id) else { return };
        let (before, stage) = (connection.worth().map(|worth| (worth, connection.since, id)), connection.stage);
        change(connection);
        if connection.stage != stage {
            connection.since = now;
        }
        let after = connection.worth().map(|worth| (worth, connection.since, id));
        if before != after
            && let Some(own) = self.peers.get_mut(&connection.peer)
        {
            if let Some(before) = before {
                own.closable.remove(&before);
            }
            own.closable.extend(after);
        }
    }

    /// The handshake is done.
    pub(crate) fn handshaken(&mut self, id: Id, now: Instant) {
        self.enter(id, now, |connection| connection.stage = Stage::Head);
    }

    /// The first byte after a pause: a head has begun.
    pub(crate) fn head_begins(&mut self, id: Id, now: Instant) {
        self.enter(id, now, |connection| {
            if connection.stage == Stage::Idle {
                connection.stage = Stage::Head;
            }
        });
    }

    /// The head of a request is here.
    pub(crate) fn request_begins(&mut self, id: Id, now: Instant) {
        self.enter(id, now, |connection| {
            connection.stage = match connection.stage {
                Stage::Requests { open, arriving } => Stage::Requests { open: open + 1, arriving: arriving + 1 },
                _ => Stage::Requests { open: 1, arriving: 1 },
            };
        });
    }

    /// A request is here whole, or nobody reads the rest of it.
    pub(crate) fn request_arrived(&mut self, id: Id, now: Instant) {
        self.enter(id, now, |connection| {
            if let Stage::Requests { arriving, .. } = &mut connection.stage {
                *arriving = arriving.saturating_sub(1);
            }
            connection.has_served = true;
        });
    }

    /// A request is answered whole, or its client is gone. It has arrived before.
    pub(crate) fn request_ends(&mut self, id: Id, now: Instant) {
        self.enter(id, now, |connection| {
            connection.stage = match connection.stage {
                Stage::Requests { open, arriving } if open > 1 => Stage::Requests { open: open - 1, arriving },
                _ => Stage::Idle,
            };
        });
    }

    /// When the stage of a connection has lasted too long; none while requests are open.
    pub(crate) fn deadline(&self, limits: &Limits, id: Id) -> Option<Instant> {
        let connection = self.open.get(&id)?;
        let after = |max: Duration| Some(connection.since + max);
        match connection.stage {
            Stage::Handshake => after(limits.handshake_max),
            Stage::Head => after(limits.header_max),
            Stage::Idle => after(limits.idle_max),
            Stage::Requests { .. } => None,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn peer(last: u8) -> Peer {
        Peer::of([10, 0, 0, last].into())
    }

    fn limits() -> Limits {
        Limits { connections_max: 4, connections_per_peer_max: 3, ..Limits::default() }
    }

    fn served(admission: &Admission) -> (Id, Option<Id>) {
        match admission {
            Admission::Served { id, instead_of } => (*id, *instead_of),
            Admission::Refused => panic!("refused"),
        }
    }

    #[test]
    fn a_full_table_closes_the_oldest_silent_connection_of_the_biggest_peer() {
        let (mut table, now) = (Table::default(), Instant::now());
        let mut open = |last, second| served(&table.admit(&limits(), peer(last), now + SECOND * second));
        let (alone, _) = open(1, 0);
        let (first, _) = open(2, 1);
        let (second, _) = open(2, 2);
        open(3, 3);
        assert_eq!(open(4, 4).1, Some(first));
        // All have one each: the oldest goes.
        assert_eq!(open(5, 5).1, Some(alone));
        assert_eq!(open(5, 6).1, Some(second));
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn connections_that_have_served_outlive_new_ones_and_requests_in_work_are_never_cut() {
        let (mut table, now) = (Table::default(), Instant::now());
        let id = |table: &mut Table| served(&table.admit(&limits(), peer(1), now)).0;
        let (idle, busy, arriving) = (id(&mut table), id(&mut table), id(&mut table));
        for request in [idle, busy, arriving] {
            table.handshaken(request, now);
            table.request_begins(request, now);
        }
        table.request_arrived(idle, now);
        table.request_ends(idle, now);
        table.request_arrived(busy, now);
        let mut closed = || match table.admit(&limits(), peer(1), now + SECOND) {
            Admission::Served { id, instead_of } => {
                // The newcomer is at once as busy as can be.
                table.request_begins(id, now);
                table.request_arrived(id, now);
                instead_of
            }
            Admission::Refused => None,
        };
        assert_eq!([closed(), closed(), closed()], [Some(idle), Some(arriving), None]);
        // Another address still finds room.
        assert_eq!(served(&table.admit(&limits(), peer(2), now)).1, None);
    }

    #[test]
    fn every_stage_but_an_answer_has_its_limit() {
        let (mut table, limits, now) = (Table::default(), limits(), Instant::now());
        let (id, _) = served(&table.admit(&limits, peer(1), now));
        let mut at = |change: &dyn Fn(&mut Table), second: u32| {
            change(&mut table);
            let deadline = table.deadline(&limits, id)?;
            Some(deadline - (now + SECOND * second))
        };
        assert_eq!(at(&|_| (), 0), Some(limits.handshake_max));
        assert_eq!(at(&|table| table.handshaken(id, now + SECOND), 1), Some(limits.header_max));
        assert_eq!(
            at(&|table| table.head_begins(id, now + SECOND * 2), 1),
            Some(limits.header_max),
            "it is due already"
        );
        assert_eq!(at(&|table| table.request_begins(id, now + SECOND * 3), 3), None);
        assert_eq!(at(&|table| table.request_arrived(id, now + SECOND * 3), 3), None);
        assert_eq!(at(&|table| table.request_ends(id, now + SECOND * 4), 4), Some(limits.idle_max));
        assert_eq!(at(&|table| table.head_begins(id, now + SECOND * 5), 5), Some(limits.header_max));
        assert_eq!(at(&|table| table.remove(id), 6), None);
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_mapped_addresses_are_those_of_ipv4() {
        let of = |text: &str| Peer::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), peer(1));
    }
}
