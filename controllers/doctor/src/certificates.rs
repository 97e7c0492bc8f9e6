//! Whether API servers trust the webhooks' certificate, and for how long.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use jiff::SignedDuration;
use koord_manager_assembly::NO_AUTHORITY;
use koord_program::findings::Report;
use koord_webhook_server::certificates::{CertificateSet, ends_at, usable_at, verifies};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{
    Options,
    cluster::Cluster,
    webhooks::{self, Configuration, Target},
};

/// koord-manager renews half a year before the end, so that this is late.
const LEFT_MIN: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn look(cluster: &Cluster, options: &Options<'_>, report: &mut Report) {
    let configurations = report.read(webhooks::configurations(cluster).await);
    let host = configurations.as_ref().and_then(|both| host_of(both)).unwrap_or_else(|| cluster.installed.dns_name());
    // An entry with a URL calls a koord-manager that need not keep its certificates in a Secret.
    let needs_secret = configurations.as_ref().is_none_or(|both| calls_service(both));
    let stored = stored(cluster, &host, needs_secret, report).await;
    let Some(configurations) = configurations else { return };
    // Entries mostly call the same place with the same authorities: each pair is looked at once.
    let mut calls: BTreeMap<(Call, String), String> = BTreeMap::new();
    for configuration in &configurations {
        for entry in configuration.entries() {
            let name = entry["name"].as_str().unwrap_or("?");
            let object = format!("{}, entry {name}", configuration.object);
            let bundle = entry["clientConfig"]["caBundle"].as_str().unwrap_or_default();
            let authorities = BASE64.decode(bundle).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let authorities = authorities.filter(|pem| bundle != NO_AUTHORITY && ends_at(pem).is_some());
            let Some(authorities) = authorities else {
                report.error(
                    object,
                    "its caBundle holds no certificate: API servers cannot call it",
                    "let koord-manager run: it fills the bundle in, and says in its log why not",
                );
                continue;
            };
            if let Some(call) = Call::of(entry) {
                calls.entry((call, authorities)).or_insert(object);
            }
        }
    }
    let mut unreached = BTreeSet::new();
    for ((call, authorities), object) in &calls {
        if let Some(set) = &stored {
            let host = &call.host;
            let chain: Vec<CertificateDer<'_>> =
                CertificateDer::pem_slice_iter(set.cert.as_bytes()).filter_map(Result::ok).collect();
            let trusted = chain.first().is_none_or(|first| verifies(first, authorities, host, cluster.now));
            if !trusted {
                report.error(
                    object,
                    format!(
                        "its caBundle does not verify the stored certificate for {host}: API servers refuse to call"
                    ),
                    "let koord-manager run: it repairs the bundle as soon as it sees it, and says in its log why not",
                );
            }
        }
        if unreached.contains(&call) {
            continue;
        }
        match call.connect(options.webhook_at).await {
            Ok(stream) => present(call, stream, object, authorities, stored.as_ref(), report).await,
            Err(error) => {
                unreached.insert(call);
                call.is_unreached(&error, object, options, report);
            }
        }
    }
}

/// What an entry calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    /// The Service, as namespace and name, where the entry names one.
    service: Option<(String, String)>,
    host: String,
    port: u16,
}

impl Call {
    fn of(entry: &Value) -> Option<Self> {
        match Target::of(entry)? {
            Target::Service { namespace, name, port, .. } => Some(Self {
                service: Some((namespace.to_owned(), name.to_owned())),
                host: format!("{name}.{namespace}.svc"),
                port,
            }),
            Target::Url(url) => {
                let url: http::Uri = url.parse().ok()?;
                let host = url.host()?.trim_matches(['[', ']']).to_owned();
                Some(Self { service: None, host, port: url.port_u16().unwrap_or(443) })
            }
        }
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// A connection; a Service's leads where the user says that the Service can be reached.
    async fn connect(&self, webhook_at: Option<&str>) -> Result<TcpStream, String> {
        let address = self.address();
        let address = webhook_at.filter(|_| self.service.is_some()).unwrap_or(&address);
        let connected = tokio::time::timeout(HANDSHAKE_MAX, TcpStream::connect(address)).await;
        connected.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())
    }

    /// Reports that the server could not be reached.
    fn is_unreached(&self, error: &str, object: &str, options: &Options<'_>, report: &mut Report) {
        let address = self.address();
        match (&self.service, options.webhook_at) {
            // A Service has its name only inside the cluster.
            (Some((namespace, name)), None) => report.note(
                format!("Service {namespace}/{name}"),
                format!("the certificate that it presents is not checked, because {address} cannot be reached from here: {error}"),
                format!(
                    "to check it too: kubectl -n {namespace} port-forward service/{name} 9443:{port}, and then koordctl doctor --webhook-at 127.0.0.1:9443; or run koordctl in a pod",
                    port = self.port
                ),
            ),
            (Some(_), Some(at)) => report.error(
                object,
                format!("no answer from {at}, where --webhook-at says that {address} can be reached: {error}"),
                "let the port-forward run, and see that it has a ready pod: kubectl port-forward says in its output why not",
            ),
            (None, _) => report.error(
                object,
                format!("no answer from {address}: {error}"),
                "let koord-manager run there, with WEBHOOK_HOST and WEBHOOK_PORT as the entry says",
            ),
        }
    }
}

/// The host that a koord-manager with `WEBHOOK_HOST` has written into its entries; none where they call the Service.
fn host_of(configurations: &[Configuration]) -> Option<String> {
    let mut entries = configurations.iter().flat_map(Configuration::entries);
    entries.find(|entry| matches!(Target::of(entry), Some(Target::Url(_)))).and_then(Call::of).map(|call| call.host)
}

fn calls_service(configurations: &[Configuration]) -> bool {
    let mut entries = configurations.iter().flat_map(Configuration::entries);
    entries.any(|entry| !matches!(Target::of(entry), Some(Target::Url(_))))
}

/// The certificates of the Secret for this host, when it is there and can be read.
async fn stored(cluster: &Cluster, host: &str, is_needed: bool, report: &mut Report) -> Option<CertificateSet> {
    let installed = &cluster.installed;
    let (namespace, name) = (&installed.namespace, &installed.secret);
    let object = format!("Secret {namespace}/{name}");
    let read = cluster.get(&format!("/api/v1/namespaces/{namespace}/secrets/{name}")).await;
    let Some(secret) = report.read(read)? else {
        if is_needed {
            report.note(
                object,
                "it is not there: no koord-manager keeps its certificates in this namespace",
                "nothing, where it keeps them in a folder (WEBHOOK_CERT_DIR) or runs elsewhere (--namespace)",
            );
        }
        return None;
    };
    let entries: BTreeMap<String, Vec<u8>> = secret["data"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(entry, text)| Some((entry.clone(), BASE64.decode(text.as_str()?).ok()?)))
        .collect();
    let set = CertificateSet::of_entries(&entries);
    let again = format!("delete it, and koord-manager makes another: kubectl -n {namespace} delete secret {name}");
    if let Err(unusable) = usable_at(&set, host, cluster.now) {
        report.error(&object, format!("what it holds cannot be served: {unusable}"), &again);
    }
    let left = ends_at(&set.cert).map(|end| (end, end.duration_since(cluster.now)));
    if let Some((end, left)) = left.filter(|(_, left)| left.is_positive() && *left < LEFT_MIN) {
        report.warning(
            &object,
            format!(
                "its certificate ends at {end}, in {} days, and should long have been renewed",
                left.as_hours() / 24
            ),
            format!("see in koord-manager's log why it does not renew; or {again}"),
        );
    }
    Some(set)
}

/// Calls as an API server does, and looks at what is presented.
async fn present(
    call: &Call,
    stream: TcpStream,
    object: &str,
    authorities: &str,
    stored: Option<&CertificateSet>,
    report: &mut Report,
) {
    let (host, address) = (&call.host, call.address());
    let handshake = tokio::time::timeout(HANDSHAKE_MAX, handshake(stream, host, authorities)).await;
    let presented = match handshake.unwrap_or_else(|_| Err("no answer".to_owned())) {
        Ok(presented) => presented,
        Err(error) => {
            return report.error(
                object,
                format!("its caBundle does not verify the certificate that {address} presents: {error}"),
                "let koord-manager put it right (it does every minute), or see in its log why it cannot",
            );
        }
    };
    let differs = stored.is_some_and(|set| {
        let mut chain = CertificateDer::pem_slice_iter(set.cert.as_bytes()).filter_map(Result::ok);
        chain.next().is_some_and(|first| *first != *presented)
    });
    if differs {
        report.warning(
            object,
            format!("{address} presents another certificate than the Secret holds"),
            "wait a minute: replicas take over a changed Secret; if it stays, see their logs",
        );
    }
}

/// The certificate that is presented, once it is verified.
async fn handshake(stream: TcpStream, host: &str, authorities: &str) -> Result<Vec<u8>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authorities.as_bytes()).filter_map(Result::ok));
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    let (_, connection) = stream.get_ref();
    let presented = connection.peer_certificates().and_then(<[_]>::first).map(|certificate| certificate.to_vec());
    presented.ok_or_else(|| "no certificate".to_owned())
}
