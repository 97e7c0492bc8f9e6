//! Keeps certificates, webhook configurations and the definitions of converted kinds right, and knows whether API servers trust this server.
//!
//! One pass reads what is stored, decides ([`certificates::decide`], [`configuration::repair_called`]), writes what differs
//! and presents the certificate. It runs on every replica: the passes of several agree, and writes carry the revision
//! that was read, so that of two replicas that want to write one reads again.

use std::{
    collections::BTreeMap,
    os::unix::fs::DirBuilderExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use jiff::Timestamp;
use koord_resource::{controller::ResourceKind, convert::Conversion};
use koord_runtime::{
    Core,
    api::Api,
    clock::SharedClock,
    write::{Answer, WireRequest},
};
use notify::{RecursiveMode, Watcher};
use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    CertWriter, Environment, Metrics, Service,
    certificates::{
        CertificateSet, Folder, FolderError, HotCertificate, IssueError, Unusable, decide, ends_at, usable_at, verifies,
    },
    configuration::{self, Called, ConfigurationError, Serving, Target},
    triggers,
};

/// A pass is made at least this often.
const RESYNC: Duration = Duration::from_mins(1);
/// After a failure, the next pass is made after this, doubling up to [`RESYNC`].
const RETRY_MIN: Duration = Duration::from_millis(200);

/// Keeps the certificates, the webhook configurations and the definitions of converted kinds as they should be.
pub struct WebhookController {
    environment: Environment,
    served: Served,
    port: u16,
    folder: Option<Folder>,
    certificate: Arc<HotCertificate>,
    clock: SharedClock,
    wake: Arc<Notify>,
    state: RwLock<Readiness>,
    /// What the last pass presented: it outlives a Secret that somebody deletes or fills with something else.
    held: RwLock<Option<CertificateSet>>,
    /// What was last reported of the folder. Passes find the same again and again.
    reported: RwLock<Option<String>>,
    /// Whether an API server has said that it knows match conditions. It is not asked again then.
    match_conditions: AtomicBool,
    metrics: Option<Metrics>,
}

/// What a server answers, and what must therefore call it.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// The paths. Entries of other paths are taken out of the webhook configurations.
    pub paths: Vec<&'static str>,
    /// Names of the CustomResourceDefinitions whose objects are converted.
    pub definitions: Vec<String>,
    /// Names of entries that declare a Service or a URL of their own. They are left as they are.
    pub elsewhere: Vec<&'static str>,
    /// The paths that refuse nothing. Their entries are left out where the API server knows no match conditions, which keep writes of
    /// this installation's programs from them.
    pub advisory: Vec<&'static str>,
}

/// Why API servers may not trust this server yet.
type Readiness = Result<(), String>;

/// Why a pass did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum WebhookControllerError {
    /// The API server could not be asked, or refused.
    #[error("{what}: {reason}")]
    Api {
        /// What was tried.
        what: String,
        /// What came back.
        reason: String,
    },
    /// Somebody else wrote at the same time.
    #[error("{0} was changed meanwhile")]
    Conflict(String),
    /// The configuration is not there.
    #[error("not found {kind} {name}")]
    NoConfiguration {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// No certificate can be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The certificate cannot be served.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The folder holds files of others that would have to be replaced.
    #[error("{why}; {source}")]
    NotOurs {
        /// Why they would have to be.
        why: String,
        /// Which files.
        source: FolderError,
    },
}

impl Served {
    /// What a service answers.
    pub fn by(service: &Service) -> Self {
        let definitions = service.conversions().iter().map(Conversion::definition_name).collect();
        let (elsewhere, advisory) = (service.elsewhere().to_vec(), service.advisory().collect());
        Self { paths: service.paths().collect(), definitions, elsewhere, advisory }
    }
}

impl WebhookController {
    /// `port` is the one that entries with a host point at.
    pub fn new(environment: Environment, served: Served, port: u16, clock: SharedClock) -> Self {
        Self {
            folder: environment.cert_dir.as_ref().map(Folder::new),
            environment,
            served,
            port,
            certificate: Arc::default(),
            clock,
            wake: Arc::default(),
            state: RwLock::new(Err("no certificate has been made yet".to_owned())),
            held: RwLock::default(),
            reported: RwLock::default(),
            match_conditions: AtomicBool::new(false),
            metrics: None,
        }
    }

    /// Sets the metrics of when certificates end and whether API servers trust this server.
    pub fn telling(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Names of the CustomResourceDefinitions that are kept right.
    pub fn definitions(&self) -> &[String] {
        &self.served.definitions
    }

    /// The certificate that is presented.
    pub fn certificate(&self) -> &Arc<HotCertificate> {
        &self.certificate
    }

    /// What is called when the Secret or a configuration has changed.
    pub fn waker(&self) -> impl Fn() + Clone + Send + Sync + 'static {
        let wake = Arc::clone(&self.wake);
        move || wake.notify_one()
    }

    /// Follows the Secret, the configurations and the definitions of converted kinds, so that changes are noticed at once.
    pub fn watch(&self, core: &mut Core) {
        triggers::watch(core, &self.environment, self.definitions(), self.waker());
    }

    /// Whether API servers trust this server; otherwise what is missing.
    pub fn ready(&self) -> Readiness {
        self.state.read().clone()
    }

    /// Makes pass after pass until it is stopped.
    pub async fn run(&self, api: &Api, stop: &CancellationToken) {
        let _watcher = self.watch_folder();
        let mut retry = RETRY_MIN;
        loop {
            let pause = match self.pass(api).await {
                Ok(again_after) => {
                    retry = RETRY_MIN;
                    again_after.map_or(RESYNC, |span| span.min(RESYNC))
                }
                Err(error) => {
                    tracing::warn!(%error, "the webhooks' certificates or configurations are not right yet");
                    let pause = retry;
                    retry = (retry * 2).min(RESYNC);
                    pause
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// One pass. Gives when to look again, if before the usual time.
    pub async fn pass(&self, api: &Api) -> Result<Option<Duration>, WebhookControllerError> {
        let outcome = self.try_pass(api).await;
        if let Err(error) = &outcome {
            // What was trusted before may still be: only the comparison at the end of a pass says so.
            let mut state = self.state.write();
            if state.is_err() {
                *state = Err(error.to_string());
            }
        }
        if let Some(metrics) = &self.metrics {
            metrics.ready.set(i64::from(self.state.read().is_ok()));
        }
        outcome
    }

    async fn try_pass(&self, api: &Api) -> Result<Option<Duration>, WebhookControllerError> {
        let now = self.clock.now();
        let host = self.environment.dns_name();
        let (stored, revision) = self.stored(api).await?;
        let (stored, lost) = self.or_held(stored, &host, now);
        let mut callers = Vec::new();
        for (kind, name) in self.callers() {
            callers.push((kind, name, configuration(api, kind, name).await?));
        }
        let published = stored.as_ref().is_some_and(|set| {
            let target = self.target(set);
            callers.iter().all(|(_, _, caller)| configuration::trusts(caller, self.called(&target)))
        });

        let decision = decide(stored.as_ref(), &host, published, now)?;
        let reason = if decision.write { Some(decision.why) } else { lost };
        let stores = match &reason {
            Some(reason) => self.store(api, &decision.set, revision.as_deref(), reason).await,
            None => Ok(()),
        };
        let set = match (stores, stored) {
            (Ok(()), _) => decision.set,
            // What is served now still can be.
            (Err(error @ WebhookControllerError::NotOurs { .. }), Some(set)) if usable_at(&set, &host, now).is_ok() => {
                self.report(&error.to_string(), "the certificates in WEBHOOK_CERT_DIR are left as they are");
                set
            }
            (Err(error), _) => return Err(error),
        };
        self.certificate.swap(&set)?;
        if let Some(metrics) = &self.metrics {
            metrics.certificates_end(ends_at(&set.cert), ends_at(&set.ca_certs));
        }
        *self.held.write() = Some(set.clone());
        self.copy_to_folder(&set);
        let target = self.target(&set);
        self.ask_for_match_conditions(api).await?;
        for (kind, name, current) in &mut callers {
            let patch = if *kind == triggers::DEFINITION {
                configuration::repair_conversion(current, &target)
            } else {
                configuration::repair_called(current, self.called(&target), |path| self.serving(path))?
            };
            if let Some(patch) = patch {
                *current = write(api, "PATCH", kind.url_path("", Some(name)), &patch).await?;
            }
        }
        *self.state.write() = self.trust(&host, self.called(&target), callers.iter().map(|(_, _, caller)| caller));
        Ok(decision.again_after)
    }

    /// What is stored, or what this process presents where that cannot be served: API servers trust it already, so that
    /// no review fails. The second value is why it must be stored again.
    fn or_held(
        &self,
        stored: Option<CertificateSet>,
        host: &str,
        now: Timestamp,
    ) -> (Option<CertificateSet>, Option<String>) {
        let lost = match stored.as_ref().map(|set| usable_at(set, host, now)) {
            Some(Ok(())) => return (stored, None),
            Some(Err(unusable)) => format!("what was stored is lost: {unusable}"),
            None => "what was stored is lost".to_owned(),
        };
        match self.held.read().clone().filter(|set| usable_at(set, host, now).is_ok()) {
            Some(held) => (Some(held), Some(lost)),
            None => (stored, None),
        }
    }

    fn target<'a>(&'a self, set: &'a CertificateSet) -> Target<'a> {
        Target {
            ca_bundle: &set.ca_certs,
            namespace: &self.environment.namespace,
            service: &self.environment.service,
            host: self.environment.host.as_deref().map(|host| (host, self.port)),
        }
    }

    fn called<'a>(&'a self, target: &'a Target<'a>) -> Called<'a> {
        Called { target, elsewhere: &self.served.elsewhere }
    }

    fn serving(&self, path: &str) -> Serving {
        if !self.served.paths.contains(&path) {
            Serving::No
        } else if !self.served.advisory.contains(&path) {
            Serving::Enforced
        } else if self.match_conditions.load(Ordering::Relaxed) {
            Serving::Advisory
        } else {
            Serving::No
        }
    }

    /// Finds out whether the API server knows match conditions, where that decides something. One that does not say so counts as one without.
    async fn ask_for_match_conditions(&self, api: &Api) -> Result<(), WebhookControllerError> {
        if self.served.advisory.is_empty() || self.match_conditions.load(Ordering::Relaxed) {
            return Ok(());
        }
        let uri = "/version".to_owned();
        let failed = |reason: String| WebhookControllerError::Api { what: format!("GET {uri}"), reason };
        let answer = api.get(uri.clone()).await.map_err(|failure| failed(failure.message))?;
        let version = serde_json::from_str(&answer.body).unwrap_or_default();
        let known = configuration::knows_match_conditions(&version).unwrap_or(false);
        self.match_conditions.store(known, Ordering::Relaxed);
        Ok(())
    }

    /// What makes API servers call this server.
    fn callers(&self) -> impl Iterator<Item = (ResourceKind, &str)> {
        let definitions = self.served.definitions.iter().map(|name| (triggers::DEFINITION, name.as_str()));
        [(triggers::MUTATING, self.environment.mutating.as_str()), (triggers::VALIDATING, &self.environment.validating)]
            .into_iter()
            .chain(definitions)
    }

    /// Whether every caller trusts the certificate that is presented.
    fn trust<'a>(&self, host: &str, called: Called<'a>, callers: impl Iterator<Item = &'a Value>) -> Readiness {
        let presented = self.certificate.presented().ok_or_else(|| "no certificate is presented".to_owned())?;
        for caller in callers {
            for (name, bundle) in configuration::bundles(caller, called) {
                let authorities = BASE64.decode(bundle).unwrap_or_default();
                if !verifies(&presented, &String::from_utf8_lossy(&authorities), host, self.clock.now()) {
                    return Err(format!(
                        "entry {name:?} of {} does not trust the certificate that is presented",
                        caller["kind"]
                    ));
                }
            }
        }
        Ok(())
    }

    /// What is stored, and the revision of the Secret.
    async fn stored(&self, api: &Api) -> Result<(Option<CertificateSet>, Option<String>), WebhookControllerError> {
        if self.environment.cert_writer == CertWriter::Folder {
            let held = self.held.read().clone();
            let Some(folder) = &self.folder else { return Ok((held, None)) };
            let read = folder.read()?;
            return Ok((read.map(|set| set.with_authority_keys(&held.unwrap_or_default())), None));
        }
        let uri = self.secret_uri(Some(&self.environment.secret));
        let Some(secret) = read(api, uri).await? else { return Ok((None, None)) };
        let entries: BTreeMap<String, Vec<u8>> = secret["data"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), BASE64.decode(value.as_str()?).ok()?)))
            .collect();
        let revision = secret["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        Ok((Some(CertificateSet::of_entries(&entries)), Some(revision)))
    }

    async fn store(
        &self,
        api: &Api,
        set: &CertificateSet,
        revision: Option<&str>,
        reason: &str,
    ) -> Result<(), WebhookControllerError> {
        if self.environment.cert_writer == CertWriter::Folder {
            let Some(folder) = &self.folder else { return Ok(()) };
            folder.write(set, self.clock.now()).map_err(|error| match error {
                source @ FolderError::Foreign { .. } => {
                    WebhookControllerError::NotOurs { why: reason.to_owned(), source }
                }
                error @ FolderError::Io { .. } => error.into(),
            })?;
            tracing::info!(reason, folder = %folder.path().display(), "certificates were written");
            return Ok(());
        }
        tracing::info!(reason, secret = self.environment.secret, "writing certificates");
        let entries = set.entries();
        let mut data: Value = entries.into_iter().map(|(name, bytes)| (name, BASE64.encode(bytes))).collect();
        let name = &self.environment.secret;
        if let Some(revision) = revision {
            for entry in CertificateSet::OTHER_ENTRIES {
                if data.get(entry).is_none() {
                    data[entry] = Value::Null;
                }
            }
            let patch = json!({"metadata": {"resourceVersion": revision}, "data": data});
            write(api, "PATCH", self.secret_uri(Some(name)), &patch).await?;
        } else {
            let namespace = &self.environment.namespace;
            let metadata = json!({"name": name, "namespace": namespace});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
            write(api, "POST", self.secret_uri(None), &secret).await?;
        }
        Ok(())
    }

    fn secret_uri(&self, name: Option<&str>) -> String {
        ResourceKind::SECRET.url_path(&self.environment.namespace, name)
    }

    /// Other programs of the Pod may read the files. The server itself does not need them.
    fn copy_to_folder(&self, set: &CertificateSet) {
        let Some(folder) = &self.folder else { return };
        if self.environment.cert_writer == CertWriter::Folder {
            return;
        }
        let copied = folder.read().and_then(|stored| match stored {
            Some(stored) if stored.public_entries() == set.public_entries() => Ok(()),
            _ => folder.write(set, self.clock.now()),
        });
        if let Err(error) = copied {
            self.report(&error.to_string(), "the certificates are served, but not copied to files");
        }
    }

    /// Warns of what is wrong with the folder, once.
    fn report(&self, error: &str, message: &str) {
        let mut reported = self.reported.write();
        if reported.as_deref() != Some(error) {
            tracing::warn!(error, "{message}");
            *reported = Some(error.to_owned());
        }
    }

    /// Wakes when somebody changes the folder. Passes at the usual times find what the system does not report.
    fn watch_folder(&self) -> Option<notify::RecommendedWatcher> {
        let folder = self.folder.as_ref().filter(|_| self.environment.cert_writer == CertWriter::Folder)?;
        let wake = self.waker();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                wake();
            }
        });
        let watching = watcher.and_then(|mut watcher| {
            let path = folder.path();
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(notify::Error::io)?;
            watcher.watch(path, RecursiveMode::NonRecursive).map(|()| watcher)
        });
        watching.inspect_err(|error| tracing::warn!(%error, "changes of the folder are noticed late")).ok()
    }
}

async fn configuration(api: &Api, kind: ResourceKind, name: &str) -> Result<Value, WebhookControllerError> {
    let found = read(api, kind.url_path("", Some(name))).await?;
    found.ok_or_else(|| WebhookControllerError::NoConfiguration { kind: kind.kind, name: name.to_owned() })
}

async fn read(api: &Api, uri: String) -> Result<Option<Value>, WebhookControllerError> {
    let what = format!("GET {uri}");
    let failed = |reason: String| WebhookControllerError::Api { what: what.clone(), reason };
    let answer = api.get(uri).await.map_err(|failure| failed(failure.message))?;
    if answer.code == 404 {
        return Ok(None);
    }
    object(&answer).map(Some).map_err(failed)
}

async fn write(api: &Api, method: &'static str, uri: String, body: &Value) -> Result<Value, WebhookControllerError> {
    let what = format!("{method} {uri}");
    let failed = |reason: String| WebhookControllerError::Api { what: what.clone(), reason };
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = WireRequest { method, uri, content_type, body: body.to_string() };
    let answer = api.call(&request).await.map_err(|failure| failed(failure.message))?;
    if answer.code == 409 {
        return Err(WebhookControllerError::Conflict(request.uri));
    }
    object(&answer).map_err(failed)
}

fn object(answer: &Answer) -> Result<Value, String> {
    if !answer.is_success() {
        return Err(format!("{} {}", answer.code, answer.status().1));
    }
    serde_json::from_str(&answer.body).map_err(|error| error.to_string())
}
