//! The cluster of a test.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use envtest::{
    admission::Webhooks,
    auth::{self, tokens::Tokens},
    cluster::standard_core,
    environment::TimedEnvironment,
    pages::StandardPages,
    serve::{Kubeconfig, Owner, TlsListener},
    shell::{Conversion, Parts, Server},
    store::HistoryLimits,
};
use http::{HeaderValue, Request, header};
use jiff::Timestamp;
use koord_program::{Setup, gates::Gates};
use koord_runtime::{
    clock::{ScaledClock, SharedClock},
    random::Random,
};
use kube::{Api, Client, Resource, api::DynamicObject, client::Body, core::NamespaceResourceScope};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tower::util::MapRequest;
use tracing::subscriber::DefaultGuard;

use crate::{
    install::{api_of, create, install, user},
    log::Log,
    operator::{Answers, Running},
    reviews::Reviews,
};

/// The time that a cluster begins with.
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// The uids and generated names of every cluster are the same.
const SEED: u64 = 1;
/// How long a test waits, if it does not say so itself.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long after a change garbage is collected and terminating namespaces are emptied.
const GARBAGE_COLLECTION: Duration = Duration::from_secs(1);

/// An API server inside the test, and the operator that runs on it. Both end when it is dropped.
///
/// Objects are read and written by [`kube::Api`]; what follows from them is waited for by [`until`](Cluster::until) and
/// [`until_gone`](Cluster::until_gone), and what must not follow by [`quiet`](Cluster::quiet).
pub struct Cluster {
    name: &'static str,
    pub(crate) clock: SharedClock,
    pub(crate) server: Server,
    /// Of the test, which may do everything.
    pub(crate) client: Client,
    tokens: Arc<Tokens>,
    /// Of the operator.
    token: String,
    /// Which features of the operator are on.
    gates: Gates,
    reviews: Reviews,
    running: Option<Running>,
    socket: Option<Socket>,
    pub(crate) patience: Duration,
    pub(crate) log: Log,
    _capture: DefaultGuard,
}

/// Where the cluster is reached by processes, and the folder with the kubeconfig that leads there.
struct Socket {
    folder: TempDir,
    _stop: watch::Sender<bool>,
}

impl Cluster {
    /// A cluster with the manifests of an operator, and the operator running on it: [`Cluster::of`], then [`Cluster::run`].
    pub async fn start<A: Answers>(
        name: &'static str,
        manifests: &[Value],
        add: impl FnOnce(&mut Setup) -> Result<A>,
    ) -> Result<Self> {
        let mut cluster = Self::of(name, manifests).await?;
        cluster.run(add)?;
        Ok(cluster)
    }

    /// A cluster with the manifests of the operator of this name, which does not run yet. Namespaces that they name are
    /// made. Where there are roles among them, they are bound to the operator, which has no other permissions.
    pub async fn of(name: &'static str, manifests: &[Value]) -> Result<Self> {
        Self::at(START, name, manifests).await
    }

    /// The same, beginning at this time instead of the first moment of 2026.
    pub async fn at(start: Timestamp, name: &'static str, manifests: &[Value]) -> Result<Self> {
        let clock = ScaledClock::shared(start, 1.0);
        let log = Log::default();
        let capture = log.capture(SharedClock::clone(&clock));
        let token = Random::from_os().uuid();
        let mut tokens = Tokens::new(token.as_bytes());
        tokens.add(token.clone(), user(name, manifests));
        let reviews = Reviews::default();
        let server = server(SharedClock::clone(&clock), &reviews)?;
        let client = Client::new(server.router(), "default");
        install(&client, name, manifests).await?;
        Ok(Self {
            name,
            clock,
            server,
            client,
            tokens: Arc::new(tokens),
            token,
            gates: Gates::new(&[]),
            reviews,
            running: None,
            socket: None,
            patience: PATIENCE,
            log,
            _capture: capture,
        })
    }

    /// Waits so long for what a test waits for, instead of a minute.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs the operator with these feature gates from the next time on. Without them every gate that it asks for is off.
    pub fn with_gates(mut self, gates: Gates) -> Self {
        self.gates = gates;
        self
    }

    /// Runs the operator: `add` adds what it consists of, and is what its `main` gives to
    /// [`run_controllers`](koord_program::run_controllers). One with webhooks gives the [`Service`](koord_webhook_server::Service)
    /// that answers them back.
    pub fn run<A: Answers>(&mut self, add: impl FnOnce(&mut Setup) -> Result<A>) -> Result<()> {
        ensure!(self.running.is_none(), "{} runs already; stop it before it runs again", self.name);
        let dependencies = (self.operator_client()?, SharedClock::clone(&self.clock), self.gates.clone());
        let (running, service) = Running::begin(self.name, dependencies, add)?;
        self.reviews.are_answered_by(service);
        self.running = Some(running);
        Ok(())
    }

    /// Stops the operator as a signal does, and waits until it has ended. It can run again afterwards.
    pub async fn stop(&mut self) -> Result<()> {
        self.reviews.are_answered_by(None);
        match self.running.take() {
            Some(running) => running.stop().await,
            None => Ok(()),
        }
    }

    /// Serves the cluster on a socket, for an operator that runs as a process, and gives the path of a kubeconfig. Its user
    /// is the operator. A test with processes runs in real time; their webhooks are not called.
    pub fn kubeconfig(&mut self) -> Result<PathBuf> {
        const FILE: &str = "kubeconfig";
        if let Some(socket) = &self.socket {
            return Ok(socket.folder.path().join(FILE));
        }
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(FILE);
        let listener = TlsListener::bind(([127, 0, 0, 1], 0).into(), &[])?;
        let kubeconfig = Kubeconfig {
            owner: Owner::named(self.name),
            server: listener.url(),
            authority_pem: listener.authority_pem().to_owned(),
            user: self.name.to_owned(),
            token: self.token.clone(),
        };
        kubeconfig.write(&path, true)?;
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(listener.run(auth::guarded(&self.server, Arc::clone(&self.tokens), None), stopped));
        self.socket = Some(Socket { folder, _stop: stop });
        Ok(path)
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Requests for objects of a kind in the namespace `default`. For others there is `kube::Api` with [`Cluster::client`].
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::default_namespaced(self.client())
    }

    /// Requests for objects of a kind for which the test has no type; those of a namespaced kind in `default`.
    pub async fn api_of(&self, api_version: &str, kind: &str) -> Result<Api<DynamicObject>> {
        api_of(&self.client, api_version, kind).await
    }

    /// Creates an object of any kind, and gives it as it is stored. One that names no namespace goes to `default`.
    pub async fn create(&self, object: &Value) -> Result<Value> {
        create(&self.client, object).await
    }

    /// The time that the cluster and the operator have.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The API server: its objects, and faults that a test injects into its answers.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A client with the permissions of the operator.
    fn operator_client(&self) -> Result<Client> {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token))?;
        let with_token = move |mut request: Request<Body>| {
            request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
            request
        };
        let router = auth::guarded(&self.server, Arc::clone(&self.tokens), None);
        Ok(Client::new(MapRequest::new(router, with_token), "default"))
    }
}

/// A server with the built-in kinds, users and roles, whose reviews go to the operator.
fn server(clock: SharedClock, reviews: &Reviews) -> Result<Server> {
    let environment = TimedEnvironment::new(SEED, move || clock.now());
    let core = standard_core(Box::new(environment), HistoryLimits::default(), None)?;
    let webhooks = Webhooks::over(reviews.clone());
    let conversion: Box<dyn Conversion> = Box::new(webhooks.converter());
    let parts = Parts {
        admission: Some(Box::new(webhooks)),
        conversion: Some(conversion),
        pages: vec![Box::new(StandardPages::default())],
        garbage_collection: Some(GARBAGE_COLLECTION),
        ..Parts::default()
    };
    Ok(Server::new(core, parts))
}
