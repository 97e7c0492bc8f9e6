//! The core of the server: a synchronous state machine from requests to answers.
//!
//! It owns no clock, no socket and no task. [`ApiServer::handle`] answers at once, opens a watch, or asks for
//! admission webhooks; in the last case whoever drives it calls them and goes on with [`ApiServer::resume`]. Objects that a
//! conversion webhook must bring into another version are asked for in the same way ([`ApiServer::resume_converted`]).

mod admit;
mod certificates;
mod change;
mod collection;
mod commit;
mod convert;
mod default_objects;
mod definitions;
mod delete;
mod finish;
mod garbage;
mod identity;
pub(crate) mod kubelet;
mod list;
pub(crate) mod node_health;
mod node_restriction;
mod ownership;
mod patch;
mod pod_admission;
mod pod_endpoints;
pub(crate) mod pod_references;
mod read;
mod restore;
mod service_account;
mod subresource;
mod taints;
mod volumes;
mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

pub use self::{
    certificates::Signer,
    convert::Conversion,
    kubelet::{CallKind, KubeletCall, Scheme},
    watch::{Frame, Watch},
    write::{Admitted, Attributes, Operation, Phase, Review},
};
use crate::{
    conversion::Converted,
    encode,
    environment::Environment,
    filter::Filter,
    negotiate::{self, Format, Route},
    options::ListOptions,
    registry::{Registry, ResourceDef},
    request::{ApiRequest, Target, User, parse_path},
    status::{ApiError, Subject},
    store::{CollectionId, HistoryLimits, Store},
};

/// Decides about writes that do not follow from the path and verb of a request.
pub trait Authorizer: Send + Sync {
    /// Whether the user may create this object, which server-side apply did not find.
    fn check_create(&self, core: &ApiServer, about: &Attributes<'_>) -> Result<(), ApiError>;
    /// Whether the user may store this object.
    fn check_store(&self, core: &ApiServer, about: &Attributes<'_>) -> Result<(), ApiError>;
    /// Whether the user may `create` this subresource of CertificateSigningRequests: whether a kubelet's request is approved.
    fn may_request_certificate(&self, core: &ApiServer, user: &User, subresource: &str) -> bool;
}

const FOLLOW_ROUNDS_MAX: usize = 32;

/// A Kubernetes API server as a state machine.
pub struct ApiServer {
    /// Kinds that are served.
    pub registry: Registry,
    /// Objects.
    pub store: Store,
    environment: Box<dyn Environment>,
    collections: WellKnown,
    /// Collections that changed, and when, since readers were notified.
    changed: Vec<(CollectionId, u64)>,
    unfollowed: Vec<(CollectionId, String)>,
    garbage: garbage::Garbage,
    default_objects: Option<default_objects::DefaultObjects>,
    volumes: Option<volumes::Volumes>,
    /// The kind of the nodes whose taints are kept.
    tainted: Option<Arc<ResourceDef>>,
    certificates: Option<certificates::Certificates>,
    admits_service_accounts: bool,
    journal: Option<Vec<crate::journal::Entry>>,
    authorizer: Option<Arc<dyn Authorizer>>,
}

/// Collections that the core itself reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WellKnown {
    pub(crate) namespaces: CollectionId,
    pub(crate) mutating_webhooks: CollectionId,
    pub(crate) validating_webhooks: CollectionId,
}

/// An HTTP answer whose body is complete.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiResponse {
    /// HTTP code.
    pub code: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// Seconds of `Retry-After`.
    pub retry_after_seconds: Option<u32>,
    /// The body.
    pub body: Bytes,
}

/// What a request leads to.
#[derive(Debug)]
pub enum Outcome {
    /// An answer.
    Done(ApiResponse),
    /// A stream of events; the caller polls it.
    Watch(Box<Watch>),
    /// Admission webhooks must be asked first.
    Review(Box<Review>),
    /// A conversion webhook must be asked first.
    Convert(Box<Conversion>),
}

// === impl ApiResponse ===

impl ApiResponse {
    /// JSON text as it is.
    pub fn json(code: u16, body: impl Into<Bytes>) -> Self {
        Self {
            code,
            content_type: "application/json",
            warnings: Vec::new(),
            retry_after_seconds: None,
            body: body.into(),
        }
    }

    /// A value in the format asked for.
    pub fn value(code: u16, value: &Value, format: Format) -> Self {
        match format {
            Format::Json => Self::json(code, serde_json::to_vec(value).unwrap_or_default()),
            Format::Yaml => {
                Self { content_type: "application/yaml", ..Self::json(code, crate::yaml::to_text(value).into_bytes()) }
            }
        }
    }

    /// A failure.
    pub fn error(error: &ApiError) -> Self {
        let mut response = Self::value(error.code(), &error.to_status(), Format::Json);
        response.warnings.clone_from(&error.failure().warnings);
        response.retry_after_seconds = error
            .failure()
            .details
            .as_ref()
            .and_then(|details| details.get("retryAfterSeconds"))
            .and_then(Value::as_u64)
            .and_then(|seconds| u32::try_from(seconds).ok());
        response
    }

    fn plain_not_found() -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::json(404, "404 page not found\n") }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Says `warning` before all others; a review says it when it comes back.
    fn with_warning(mut self, warning: Option<String>) -> Self {
        let warnings = match &mut self {
            Outcome::Done(response) => &mut response.warnings,
            Outcome::Watch(watch) => &mut watch.warnings,
            Outcome::Review(_) | Outcome::Convert(_) => return self,
        };
        if let Some(warning) = warning.filter(|warning| !warnings.contains(warning)) {
            warnings.insert(0, warning);
        }
        self
    }
}

impl From<Result<Outcome, ApiError>> for Outcome {
    fn from(result: Result<Outcome, ApiError>) -> Self {
        result.unwrap_or_else(|error| Outcome::Done(ApiResponse::error(&error)))
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// A server without kinds and objects.
    pub fn empty(environment: Box<dyn Environment>, limits: HistoryLimits) -> Self {
        let mut store = Store::new(limits);
        let collections = WellKnown {
            namespaces: store.collection_id("/namespaces"),
            mutating_webhooks: store.collection_id("admissionregistration.k8s.io/mutatingwebhookconfigurations"),
            validating_webhooks: store.collection_id("admissionregistration.k8s.io/validatingwebhookconfigurations"),
        };
        Self {
            registry: Registry::default(),
            store,
            environment,
            collections,
            changed: Vec::new(),
            unfollowed: Vec::new(),
            garbage: garbage::Garbage::default(),
            default_objects: None,
            volumes: None,
            tainted: None,
            certificates: None,
            admits_service_accounts: false,
            journal: None,
            authorizer: None,
        }
    }

    /// Another server in the same state. What then happens to the one is not seen by the other; they share only what
    /// never changes: objects at rest, and what was made from their definitions.
    pub fn fork(&self, environment: Box<dyn Environment>) -> Self {
        Self {
            registry: self.registry.clone(),
            store: self.store.clone(),
            environment,
            collections: self.collections,
            changed: self.changed.clone(),
            unfollowed: self.unfollowed.clone(),
            garbage: self.garbage.clone(),
            default_objects: self.default_objects.clone(),
            volumes: self.volumes.clone(),
            tainted: self.tainted.clone(),
            certificates: self.certificates.clone(),
            admits_service_accounts: self.admits_service_accounts,
            journal: self.journal.as_ref().map(|_| Vec::new()),
            authorizer: self.authorizer.clone(),
        }
    }

    /// Lets `authorizer` decide about writes; without one, whoever may send a request may do what it says.
    pub fn authorize_with(&mut self, authorizer: Arc<dyn Authorizer>) {
        self.authorizer = Some(authorizer);
    }

    /// Answers a request.
    pub fn handle(&mut self, request: &ApiRequest) -> Outcome {
        self.handle_with(request, Converted::default())
    }

    /// Answers a request with what was converted for it.
    fn handle_with(&mut self, request: &ApiRequest, converted: Converted) -> Outcome {
        let outcome = self.dispatch(request, converted);
        self.follow_changes();
        outcome
    }

    /// Answers a request of the server itself: what follows from changes waits until the caller is done.
    pub(crate) fn handle_own(&mut self, request: &ApiRequest) -> Outcome {
        self.dispatch(request, Converted::default())
    }

    fn dispatch(&mut self, request: &ApiRequest, converted: Converted) -> Outcome {
        let Some(target) = parse_path(&request.path) else { return Outcome::Done(ApiResponse::plain_not_found()) };
        if !self.registry.serves(&target.group, &target.version) {
            // Groups that every server has know what they lack.
            if crate::discovery::is_built_in(&target.group) {
                return Err(ApiError::no_such_resource()).into();
            }
            return Outcome::Done(ApiResponse::plain_not_found());
        }
        let deprecation = self.registry.get(&target.group, &target.version, &target.resource);
        let deprecation = deprecation.and_then(|definition| definition.deprecation.clone());
        Outcome::from(self.route(request, target, converted)).with_warning(deprecation)
    }

    /// Drops what is known to need no further pass.
    pub(crate) fn forget_unfollowed(&mut self, collection: CollectionId, key: &str) {
        self.unfollowed.retain(|(known, name)| *known != collection || name != key);
    }

    /// Takes all objects of a kind as changed.
    pub(super) fn follow_all(&mut self, kind: &ResourceDef) {
        let objects = self.store.collection(kind.collection).range("", "");
        self.unfollowed.extend(objects.map(|(key, _)| (kind.collection, key.to_string())));
    }

    /// Brings what depends on changed objects up to date: definitions and what they serve, and what the controllers of this
    /// server maintain.
    pub(super) fn follow_changes(&mut self) {
        // Each round settles something; the limit only guards against two rules that undo each other.
        for _ in 0..FOLLOW_ROUNDS_MAX {
            let changed = std::mem::take(&mut self.unfollowed);
            if changed.is_empty() {
                return;
            }
            definitions::follow(self, &changed);
            self.reconcile_default_objects(&changed);
            self.reconcile_volumes(&changed);
            self.reconcile_taints(&changed);
            self.reconcile_certificates(&changed);
        }
    }

    fn route(&mut self, request: &ApiRequest, target: Target, converted: Converted) -> Result<Outcome, ApiError> {
        let definition = self.registry.get(&target.group, &target.version, &target.resource);
        let definition = Arc::clone(definition.ok_or_else(ApiError::no_such_resource)?);
        if definition.namespaced && target.namespace.is_empty() && !target.name.is_empty() {
            if definition.custom {
                return Ok(Outcome::Done(ApiResponse::plain_not_found()));
            }
            return Err(ApiError::no_such_resource());
        }
        if !definition.namespaced && !target.namespace.is_empty() {
            if definition.custom {
                return Ok(Outcome::Done(ApiResponse::plain_not_found()));
            }
            return Err(ApiError::no_such_resource());
        }
        let definition = convert::seeing(definition, converted);
        if let Some(conversion) = self.conversion_of_target(request, &target, &definition) {
            return Ok(conversion);
        }
        if target.subresource.is_empty() {
            self.route_resource(request, target, definition)
        } else {
            self.route_subresource(request, target, definition)
        }
    }

    fn route_resource(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let is_collection = target.name.is_empty();
        let needs_namespace = definition.namespaced && target.namespace.is_empty();
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        if definition.custom && needs_namespace && !reads {
            return Ok(Outcome::Done(ApiResponse::plain_not_found()));
        }
        let verb = match (&request.method, is_collection) {
            // Custom resources are routed by verb alone, whatever the path is.
            (&Method::POST, false) if definition.custom => "create",
            (&Method::PUT | &Method::PATCH, true) if definition.custom => {
                return Err(ApiError::bad_request("name must be provided"));
            }
            (&Method::GET, _) if target.watch_prefix => "watch",
            (&Method::GET | &Method::HEAD, true) => "list",
            (&Method::GET | &Method::HEAD, false) => "get",
            (&Method::POST, true) if !needs_namespace => "create",
            (&Method::PUT, false) => "update",
            (&Method::PATCH, false) => "patch",
            (&Method::DELETE, false) => "delete",
            (&Method::DELETE, true) if !needs_namespace => "deletecollection",
            _ if definition.custom => {
                return Err(ApiError::verb_not_supported("", subject(&definition, "")));
            }
            _ => return Err(ApiError::method_not_allowed()),
        };
        if request.method == Method::HEAD && !definition.custom {
            return Err(ApiError::method_not_allowed());
        }
        if !definition.allows(verb) {
            return Err(ApiError::method_not_allowed());
        }
        if !definition.custom {
            let is_listed = is_collection && request.method == Method::GET;
            let route = if is_listed || target.watch_prefix { Route::Collection } else { Route::Object };
            route.accepts(&request.accept)?;
        }
        match verb {
            "get" => self.get(request, &target, &definition),
            "list" | "watch" => {
                let mut options = ListOptions::read(request)?;
                // Selectors are read before it is clear in which form the list is wanted.
                let representation = match negotiate::representation(&request.accept) {
                    Ok(representation) => representation,
                    Err(error) => return Err(Filter::new(&definition, &target, &options).err().unwrap_or(error)),
                };
                if options.watch || target.watch_prefix {
                    options.watch = true;
                    self.open_watch(request, &target, definition, &options, representation)
                } else {
                    self.list(request, &target, &definition, &options, representation)
                }
            }
            "create" if definition.plural == "bindings" && definition.group.is_empty() => {
                self.bind_by_collection(request, target)
            }
            "create" => self.create(request, target, definition),
            "update" => self.update(request, target, definition),
            "patch" => self.patch(request, target, definition),
            "delete" => self.delete(request, target, definition),
            _ => self.delete_collection(request, target, definition),
        }
    }

    /// Where time and identities come from.
    pub fn environment(&mut self) -> &mut dyn Environment {
        self.environment.as_mut()
    }

    /// The present time.
    pub fn now(&mut self) -> jiff::Timestamp {
        self.environment.now()
    }

    /// The oldest way of binding a pod: a POST to the collection of bindings.
    fn bind_by_collection(&mut self, request: &ApiRequest, mut target: Target) -> Result<Outcome, ApiError> {
        let pods = self.registry.get("", "v1", "pods").cloned().ok_or_else(ApiError::no_such_resource)?;
        "binding".clone_into(&mut target.subresource);
        self.create_subresource(request, target, pods)
    }

    /// Changes that readers see since the last call, by collection and revision.
    pub fn take_changed(&mut self) -> Vec<(CollectionId, u64)> {
        let shown = self.store.shown();
        self.changed.extract_if(.., |(_, revision)| *revision <= shown).collect()
    }

    /// Whether any admission webhook is configured.
    pub(crate) fn has_webhooks(&self, phase: Phase) -> bool {
        let collection = match phase {
            Phase::Mutating => self.collections.mutating_webhooks,
            Phase::Validating => self.collections.validating_webhooks,
        };
        !self.store.collection(collection).is_empty()
    }

    /// The object as a value, in `definition`'s version.
    pub fn object(&self, definition: &ResourceDef, namespace: &str, name: &str) -> Option<Value> {
        let record = self.store.collection(definition.collection).get(&definition.key(namespace, name))?;
        Some(encode::value(definition, record))
    }
}

pub(crate) fn subject<'a>(definition: &'a ResourceDef, name: &'a str) -> Subject<'a> {
    Subject { group: &definition.group, resource: &definition.plural, name }
}

pub(crate) fn kind_subject<'a>(definition: &'a ResourceDef, name: &'a str) -> Subject<'a> {
    // Events of both groups are checked as those of the core group.
    let group = if definition.kind == "Event" && !definition.custom { "" } else { definition.group.as_str() };
    Subject { group, resource: &definition.kind, name }
}
