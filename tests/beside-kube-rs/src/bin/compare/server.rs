//! The embedded API server on a socket, with a count of what clients ask for.

use std::{
    ops::Add,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use axum::{
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use envtest::{
    cluster::{Cluster, Options},
    request::ApiRequest,
    serve::{Owner, TlsListener},
    shell::Server,
};
use http::Method;
use serde_json::Value;
use tokio::sync::watch;

/// Requests of clients, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Writes of objects that are neither Leases nor events.
    pub writes: usize,
    /// Gets and lists, of which each page counts.
    pub reads: usize,
    /// Watches that were opened.
    pub watches: usize,
    /// Leader election.
    pub leases: usize,
    /// Events that were written.
    pub events: usize,
    /// When the first write or read came, and when the last one was answered.
    pub span: Option<(Instant, Instant)>,
}

// === impl Counts ===

impl Counts {
    /// What has nothing to do with watches and leader election.
    pub fn work(&self) -> usize {
        self.writes + self.reads + self.events
    }
}

impl Add for Counts {
    type Output = Self;

    /// Both together, with the later span.
    fn add(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            watches: self.watches + other.watches,
            leases: self.leases + other.leases,
            events: self.events + other.events,
            span: other.span.or(self.span),
        }
    }
}

/// The server; it ends when dropped.
pub struct Counted {
    server: Server,
    counts: Arc<Mutex<Counts>>,
    /// The text of a kubeconfig of its administrator.
    pub kubeconfig: String,
    _stop: watch::Sender<bool>,
}

// === impl Counted ===

impl Counted {
    /// Starts a server with these objects.
    pub async fn start(objects: &[Value]) -> Result<Self> {
        let cluster = Cluster::bind(Options::default()).await?;
        for object in objects {
            cluster.create(object).await?;
        }
        // A socket of its own, because the cluster's own has no room for a layer that counts.
        let listener = TlsListener::bind(([127, 0, 0, 1], 0).into(), &[])?;
        let mut kubeconfig = cluster.kubeconfig(Owner::named("beside"));
        kubeconfig.server = listener.url();
        listener.authority_pem().clone_into(&mut kubeconfig.authority_pem);
        let counts = Arc::<Mutex<Counts>>::default();
        let router = cluster.router().layer(middleware::from_fn_with_state(Arc::clone(&counts), count));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(listener.run(router, stopped));
        Ok(Self { server: cluster.server.clone(), counts, kubeconfig: kubeconfig.to_text(), _stop: stop })
    }

    /// What has been asked for since the last [`Self::reset`].
    pub fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts from zero.
    pub fn reset(&self) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = Counts::default();
    }

    /// A request that is not counted.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = ApiRequest::new(method.clone(), path, body);
        request.query = envtest::request::parse_query(query);
        if method == Method::PATCH {
            "application/merge-patch+json".clone_into(&mut request.content_type);
        }
        let Ok(answer) = self.server.answer(&request).await else { bail!("{path} is a watch") };
        let text = String::from_utf8_lossy(&answer.body);
        anyhow::ensure!(answer.code < 400, "{method} {path}: {text}");
        serde_json::from_str(&text).with_context(|| format!("{method} {path}"))
    }
}

async fn count(State(counts): State<Arc<Mutex<Counts>>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let of: fn(&mut Counts) -> &mut usize = match () {
        () if path.contains("/leases") => |counts| &mut counts.leases,
        () if path.ends_with("/events") || path.contains("/events/") => |counts| &mut counts.events,
        () if is_read && (query.contains("watch=true") || query.contains("watch=1")) => |counts| &mut counts.watches,
        () if is_read => |counts| &mut counts.reads,
        () => |counts| &mut counts.writes,
    };
    *of(&mut counts.lock().unwrap_or_else(PoisonError::into_inner)) += 1;
    let response = next.run(request).await;
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    if counts.work() > 0 {
        let first = counts.span.map_or(begun, |(first, _)| first);
        counts.span = Some((first, Instant::now()));
    }
    response
}
