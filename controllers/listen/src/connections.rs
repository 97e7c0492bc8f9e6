//! The connections of a server and the requests on them, as their tasks see them.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Limits,
    budget::{Budget, Charge, ShareId},
    memory::{HighWater, give_back},
    table::{Admission, Id, Peer, Table},
    tally::Tally,
};

/// As many connections are a flood.
const CONNECTIONS: usize = 256;

/// What the tasks of a server share.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) limits: Limits,
    open: Mutex<Open>,
    bodies: Mutex<Budget>,
    /// Connections that were refused or closed for others.
    turned_away: AtomicU64,
    /// Connections of HTTP/2 that were closed because their clients reset too many requests.
    flooded: AtomicU64,
    lines: Mutex<Lines>,
}

/// When the log says what of clients.
#[derive(Debug, Default)]
struct Lines {
    turned_away: Tally,
    flooded: Tally,
}

#[derive(Debug)]
struct Open {
    table: Table,
    ends: BTreeMap<Id, CancellationToken>,
    most: HighWater,
}

// === impl Connections ===

impl Connections {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let bodies = Mutex::new(Budget::new(limits.bodies.clone()));
        let open = Open { table: Table::default(), ends: BTreeMap::new(), most: HighWater::new(CONNECTIONS) };
        Arc::new(Self {
            limits,
            open: Mutex::new(open),
            bodies,
            turned_away: AtomicU64::new(0),
            flooded: AtomicU64::new(0),
            lines: Mutex::default(),
        })
    }

    /// Makes room for a connection; none if there is none to make.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Connection> {
        let peer = Peer::of(address);
        let mut open = self.open.lock();
        let admission = open.table.admit(&self.limits, peer, Instant::now());
        if !matches!(admission, Admission::Served { instead_of: None, .. }) {
            self.turn_away();
        }
        let Admission::Served { id, instead_of } = admission else { return None };
        if let Some(closed) = instead_of.and_then(|id| open.ends.remove(&id)) {
            closed.cancel();
        }
        let ended = CancellationToken::new();
        open.ends.insert(id, ended.clone());
        let count = open.table.len();
        open.most.rises(count);
        Some(Connection { all: Arc::clone(self), id, peer, ended, idles: AtomicBool::new(false) })
    }

    /// Closes the connection that matters least, because the system has no room for another.
    pub(crate) fn shed(&self) {
        let mut open = self.open.lock();
        let Some(least) = open.table.least(None) else { return };
        open.table.remove(least);
        if let Some(ended) = open.ends.remove(&least) {
            ended.cancel();
        }
        self.turn_away();
    }

    fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.lines.lock().turned_away.add(Instant::now()) {
            let max = self.limits.connections_max;
            tracing::warn!(count, max, "connections were closed or refused to make room for new ones");
        }
    }

    /// A connection was closed because its client reset too many requests.
    fn flood(&self) {
        self.flooded.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.lines.lock().flooded.add(Instant::now()) {
            tracing::warn!(
                count,
                "connections of HTTP/2 were closed: their clients reset requests faster than they are served"
            );
        }
    }

    /// How many of them there were so far.
    pub(crate) fn flooded(&self) -> u64 {
        self.flooded.load(Ordering::Relaxed)
    }

    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().table.len()
    }

    /// How many were refused or closed for others so far.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }
}

/// One open connection. It is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Arc<Connections>,
    id: Id,
    peer: Peer,
    /// Cancelled when the connection is closed for another.
    pub(crate) ended: CancellationToken,
    /// Whether the next byte begins a head.
    idles: AtomicBool,
}

// === impl Connection ===

impl Connection {
    pub(crate) fn limits(&self) -> &Limits {
        &self.all.limits
    }

    fn enter<T>(&self, change: impl FnOnce(&mut Table, Instant) -> T) -> T {
        change(&mut self.all.open.lock().table, Instant::now())
    }

    pub(crate) fn handshaken(&self) {
        self.enter(|table, now| table.handshaken(self.id, now));
    }

    /// Bytes have come.
    pub(crate) fn received(&self) {
        if self.idles.swap(false, Ordering::Relaxed) {
            self.enter(|table, now| table.head_begins(self.id, now));
        }
    }

    /// It was closed because its client reset too many requests.
    pub(crate) fn flooded(&self) {
        self.all.flood();
    }

    /// When its stage has lasted too long, if it has a limit.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.enter(|table, _| table.deadline(&self.all.limits, self.id))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.open.lock();
        open.table.remove(self.id);
        open.ends.remove(&self.id);
        let count = open.table.len();
        let is_over = open.most.falls(count);
        drop(open);
        if is_over {
            give_back();
        }
    }
}

/// One request in flight, from its head until its answer is sent or given up.
#[derive(Debug)]
pub(crate) struct InFlight {
    connection: Arc<Connection>,
    has_arrived: AtomicBool,
    share: ShareId,
}

// === impl InFlight ===

impl InFlight {
    pub(crate) fn begin(connection: Arc<Connection>) -> Arc<Self> {
        connection.enter(|table, now| table.request_begins(connection.id, now));
        let share = connection.all.bodies.lock().open(connection.peer, Instant::now());
        Arc::new(Self { connection, has_arrived: AtomicBool::new(false), share })
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.connection.limits()
    }

    /// Nothing more of it will be read.
    pub(crate) fn arrived(&self) {
        if !self.has_arrived.swap(true, Ordering::Relaxed) {
            self.connection.all.bodies.lock().arrived(self.share);
            self.connection.enter(|table, now| table.request_arrived(self.connection.id, now));
        }
    }

    /// Asks for room for more bytes of the body; the waker is called when it is worth asking again.
    pub(crate) fn charge(&self, bytes: usize, waker: &Waker) -> Charge {
        self.connection.all.bodies.lock().charge(self.share, bytes, Instant::now(), waker)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.arrived();
        let is_over = self.connection.all.bodies.lock().release(self.share);
        if is_over {
            give_back();
        }
        self.connection.idles.store(true, Ordering::Relaxed);
        self.connection.enter(|table, now| table.request_ends(self.connection.id, now));
    }
}
