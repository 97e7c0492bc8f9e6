//! A whole server: built-in kinds, users and roles, pages, TLS; what programs put together.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::Value;
use tokio::sync::watch;

use crate::admission::{ServiceAlias, Webhooks};
use crate::auth::tokens::{TokenFileError, Tokens};
use crate::auth::{self, Identities, certificates::Certificates, recorder::Recorder, reviews::Reviews};
use crate::bootstrap;
use crate::environment::{Environment, SystemEnvironment};
use crate::journal::{Contents, Journal, JournalError};
use crate::kinds;
use crate::pages::StandardPages;
use crate::request::{ApiRequest, User};
use crate::serve::{Authority, AuthoritySigner, Kubeconfig, Kubelets, Owner, ServeError, TlsListener};
use crate::server::ApiServer;
use crate::shell::{Parts, Server};
use crate::status::ApiError;
use crate::store::HistoryLimits;

/// What a cluster is made with.
pub struct Options {
    /// Where to listen; port 0 takes any free one.
    pub address: SocketAddr,
    /// Further names that the certificate is for.
    pub tls_names: Vec<String>,
    /// Further users, as CSV.
    pub token_file: Option<PathBuf>,
    /// Where services of webhooks are really found.
    pub service_aliases: Vec<ServiceAlias>,
    /// Time and randomness.
    pub environment: Box<dyn Environment>,
    /// How much history watches can go back.
    pub history: HistoryLimits,
    /// What kube-controller-manager does in a cluster, done by the server itself. Without it the server is alone, as
    /// kube-apiserver is: objects whose owners are gone stay, and so do namespaces that are being deleted.
    pub controllers: Option<Controllers>,
    /// Whether new pods get a ServiceAccount, which must exist, and its token (admission plugin ServiceAccount): what pods that
    /// run on real nodes need to speak to the server.
    pub service_account_admission: bool,
    /// Where objects are kept over restarts; none keeps them in memory alone.
    pub data_dir: Option<PathBuf>,
    /// Notes what users ask for over the socket.
    pub recorder: Option<Recorder>,
}

/// Garbage collection, the deletion of namespaces, ServiceAccount `default` and ConfigMap `kube-root-ca.crt` in every
/// namespace, the rules of aggregated ClusterRoles, the binding of volumes and claims, the taints of cordoned nodes and of
/// bad conditions, the conditions of nodes whose kubelets are gone, and the approval and signing of kubelets' requests for
/// certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// How long after a change garbage is collected and terminating namespaces are emptied.
    pub delay: Duration,
    /// How long a kubelet may renew no lease before its node is unknown; longer than this by 5 s at most.
    pub node_grace: Duration,
}

impl Default for Controllers {
    fn default() -> Self {
        Self { delay: Duration::from_secs(2), node_grace: Duration::from_secs(50) }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls_names: Vec::new(),
            token_file: None,
            service_aliases: Vec::new(),
            environment: Box::new(SystemEnvironment::default()),
            history: HistoryLimits::default(),
            controllers: None,
            service_account_admission: false,
            data_dir: None,
            recorder: None,
        }
    }
}

/// Why a cluster cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The socket or its certificate.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The token file.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The operating system gives no randomness.
    #[error("the operating system gives no random bytes for tokens")]
    NoRandomness,
    /// An object that every cluster has cannot be made.
    #[error("the server cannot make its first objects: {0}")]
    Bootstrap(#[from] ApiError),
    /// The data directory.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A text that nobody can guess, whatever the injected randomness is.
fn secret() -> Result<String, ClusterError> {
    let random = ring::rand::generate::<[u8; 24]>(&ring::rand::SystemRandom::new());
    let bytes = random.map_err(|_| ClusterError::NoRandomness)?.expose();
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Why an object cannot be created at the start.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// It says no kind that the server has.
    #[error("{kind} of {api_version} is not a kind that the server has")]
    UnknownKind {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// The server refuses it.
    #[error(transparent)]
    Refused(#[from] ApiError),
}

/// The core of a whole server, on top of what a journal holds: the built-in kinds, the objects, users and roles that every
/// cluster has, and their permissions. With a journal, every further change is kept for it.
pub fn standard_core(
    environment: Box<dyn Environment>,
    history: HistoryLimits,
    stored: Option<Contents>,
) -> Result<ApiServer, ApiError> {
    let mut core = ApiServer::empty(environment, history);
    kinds::install(&mut core);
    if let Some(contents) = stored {
        core.restore(contents);
        core.start_journal();
    }
    bootstrap::run(&mut core)?;
    auth::bootstrap::install(&mut core);
    core.authorize_with(Arc::new(auth::RoleBased));
    Ok(core)
}

/// A whole server without sockets, in memory: its [core](standard_core), and the pages beside it, without webhooks.
///
/// # Errors
///
/// The objects that every cluster has cannot be created.
pub fn standard_server(environment: Box<dyn Environment>) -> Result<Server, ApiError> {
    let core = standard_core(environment, HistoryLimits::default(), None)?;
    Ok(Server::new(core, Parts { pages: vec![Box::new(StandardPages::default())], ..Parts::default() }))
}

/// A server with a bound socket, ready to run.
pub struct Cluster {
    /// The server; [`Server::router`] serves clients in this process without TLS and without checks.
    pub server: Server,
    listener: TlsListener,
    identities: Identities,
    admin_token: String,
    recorder: Option<Recorder>,
}

// === impl Cluster ===

impl Cluster {
    /// Binds the socket and fills in what every cluster has.
    pub async fn bind(options: Options) -> Result<Self, ClusterError> {
        let Options {
            address,
            tls_names,
            token_file,
            service_aliases,
            environment,
            history,
            controllers,
            service_account_admission,
            data_dir,
            recorder,
        } = options;
        let listener = TlsListener::bind_as(address, &tls_names, || match &data_dir {
            Some(folder) => Authority::kept(folder),
            None => Authority::new(),
        })?;
        let admin_token = secret()?;
        let mut tokens = Tokens::new(secret()?.as_bytes());
        let groups = vec!["system:masters".to_owned()];
        tokens.add(
            admin_token.clone(),
            User { name: "admin".to_owned(), uid: "uid".to_owned(), groups, ..User::default() },
        );
        if let Some(path) = &token_file {
            tokens.add_file(path)?;
        }
        let tokens = Arc::new(tokens);
        let (journal, stored) = data_dir.as_deref().map(Journal::open).transpose()?.unzip();
        let mut core = standard_core(environment, history, stored)?;
        if controllers.is_some() {
            core.maintain_default_objects(listener.authority_pem());
            core.maintain_volumes();
            core.maintain_taints();
            core.maintain_certificates(Arc::new(AuthoritySigner(Arc::clone(listener.authority()))));
        }
        if service_account_admission {
            core.admit_service_accounts();
        }
        let pages: Vec<Box<dyn crate::shell::Pages>> =
            vec![Box::new(StandardPages::default()), Box::new(Reviews::new(Arc::clone(&tokens)))];
        let webhooks = Webhooks::new(service_aliases);
        let conversion = Some(Box::new(webhooks.converter()) as _);
        let garbage_collection = controllers.map(|controllers| controllers.delay);
        let kubelets = Some(Box::new(Kubelets::new(Arc::clone(listener.authority()))) as _);
        let parts =
            Parts { pages, admission: Some(Box::new(webhooks)), conversion, garbage_collection, journal, kubelets };
        let server = Server::new(core, parts);
        server.settled().await?;
        if let Some(controllers) = controllers {
            server.monitor_nodes(controllers.node_grace);
        }
        let certificates = listener.authority().client_verifier().map_err(ServeError::from)?;
        let identities = Identities { tokens, certificates: Some(Certificates::new(certificates)) };
        Ok(Self { server, listener, identities, admin_token, recorder })
    }

    /// Where clients connect.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// The kubeconfig of user `admin`, group `system:masters`.
    pub fn kubeconfig(&self, owner: Owner) -> Kubeconfig {
        Kubeconfig {
            owner,
            server: self.url(),
            authority_pem: self.listener.authority_pem().to_owned(),
            user: "admin".to_owned(),
            token: self.admin_token.clone(),
        }
    }

    /// Creates an object as the administrator.
    pub async fn create(&self, object: &Value) -> Result<(), SeedError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let (group, version) = crate::builtins::split_group_version(api_version);
        let definition = self.server.with_core(|core| core.registry.by_kind(group, version, kind).cloned());
        let definition = definition
            .ok_or_else(|| SeedError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() })?;
        let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{api_version}") };
        let namespace = match (definition.namespaced, text("/metadata/namespace")) {
            (false, _) => String::new(),
            (true, "") => "/namespaces/default".to_owned(),
            (true, namespace) => format!("/namespaces/{namespace}"),
        };
        let path = format!("{base}{namespace}/{}", definition.plural);
        let request = ApiRequest::new(Method::POST, &path, object.to_string());
        match self.server.answer(&request).await {
            Ok(answer) if answer.code >= 400 => {
                let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let message = status["message"].as_str().unwrap_or_default().to_owned();
                let reason = status["reason"].as_str().unwrap_or_default().to_owned();
                Err(ApiError::new(answer.code, reason, message).into())
            }
            _ => Ok(()),
        }
    }

    /// What clients reach over the socket: every request is authenticated and authorized.
    pub fn router(&self) -> Router {
        auth::guarded(&self.server, self.identities.clone(), self.recorder.clone())
    }

    /// Answers clients until `stop` turns true.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let router = self.router();
        self.listener.run(router, stop).await;
    }
}
