//! Extenders: webhooks that take part in scheduling.

use std::collections::BTreeSet;

use koord_configuration::{Configuration, Problems};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};

/// A webhook that takes part in scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct Extender {
    /// The URL to which verbs are appended.
    pub url_prefix: String,
    /// The verb that filters nodes; empty if it does not.
    pub filter_verb: String,
    /// The verb that chooses victims of preemption; empty if it does not.
    pub preempt_verb: String,
    /// The verb that rates nodes; empty if it does not.
    pub prioritize_verb: String,
    /// What its ratings, from 0 to 10, are multiplied by.
    pub weight: i64,
    /// The verb that binds pods; empty if it does not. Only one extender may.
    pub bind_verb: String,
    /// Whether certificates are accepted without verification, unless tlsConfig names a certificate authority.
    #[serde(rename = "enableHTTPS")]
    pub enable_https: bool,
    /// TLS settings of the connection: certificates of the extender and of this program.
    pub tls_config: Option<ExtenderTls>,
    /// How long an answer may take.
    #[koord(default = "5s")]
    pub http_timeout: Duration,
    /// Whether the extender knows all nodes, so that their names are enough.
    pub node_cache_capable: bool,
    /// The extender is only asked about pods that request one of these extended resources; about all pods without any.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether pods are scheduled without the extender when it does not answer.
    pub ignorable: bool,
}

/// TLS settings of the connection to an extender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct ExtenderTls {
    /// Whether any certificate of the extender is accepted.
    pub insecure: bool,
    /// The name that its certificate must have, instead of the host of the URL.
    pub server_name: String,
    /// The certificate of the program.
    pub cert_file: String,
    /// The key of that certificate.
    pub key_file: String,
    /// The certificate authorities that verify the certificate of the extender.
    pub ca_file: String,
    /// The certificate of the program, in base64.
    pub cert_data: String,
    /// The key of that certificate, in base64.
    pub key_data: String,
    /// The certificate authorities that verify the certificate of the extender, in base64.
    pub ca_data: String,
}

/// An extended resource that an extender manages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ManagedResource {
    /// Its name.
    pub name: String,
    /// Whether the scheduler leaves the resource out when it filters nodes.
    pub ignored_by_scheduler: bool,
}

impl Extender {
    fn check(&self, problems: &mut Problems) {
        if !["http://", "https://"].iter().any(|scheme| self.url_prefix.starts_with(scheme)) {
            problems.add(&["urlPrefix"], format!("{:?} must begin with http:// or https://", self.url_prefix));
        }
        for (key, verb) in [
            ("filterVerb", &self.filter_verb),
            ("preemptVerb", &self.preempt_verb),
            ("prioritizeVerb", &self.prioritize_verb),
            ("bindVerb", &self.bind_verb),
        ] {
            if !verb.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._~/".contains(letter)) {
                problems.add(&[key], format!("{verb:?} is no part of a path"));
            }
        }
        if !self.prioritize_verb.is_empty() && self.weight <= 0 {
            problems.add(&["weight"], "must be greater than 0, because there is a prioritizeVerb");
        }
        if self.http_timeout <= Duration::ZERO {
            problems.add(&["httpTimeout"], "must be longer than 0");
        }
    }
}

impl ExtenderTls {
    fn check(&self, problems: &mut Problems) {
        let mut wrong = |key: &str, message: &str| problems.add(&[key], message);
        let has_authority = !(self.ca_file.is_empty() && self.ca_data.is_empty());
        if self.insecure && has_authority {
            wrong("insecure", "must not be true where an authority is named");
        }
        let has_certificate = !(self.cert_file.is_empty() && self.cert_data.is_empty());
        let has_key = !(self.key_file.is_empty() && self.key_data.is_empty());
        if has_certificate && !has_key {
            wrong("certFile", "keyFile or keyData must name its key");
        }
        if has_key && !has_certificate {
            wrong("keyFile", "certFile or certData must name its certificate");
        }
    }
}

/// What is wrong between extenders.
pub(super) fn check_together(extenders: &[Extender], problems: &mut Problems) {
    let mut managed = BTreeSet::new();
    for (index, extender) in extenders.iter().enumerate() {
        let at = index.to_string();
        for (index, ManagedResource { name, .. }) in extender.managed_resources.iter().enumerate() {
            let keys = ["extenders", &at, "managedResources", &index.to_string(), "name"];
            if !is_extended(name) {
                problems.add(&keys, format!("{name:?} is no extended resource, such as example.com/device"));
            } else if !managed.insert(name) {
                problems.add(&keys, format!("{name:?} stands twice"));
            }
        }
    }
    let binders = extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    if binders > 1 {
        problems.add(&["extenders"], format!("{binders} extenders have a bindVerb; only one may"));
    }
}

/// Whether this is a resource of nodes that Kubernetes does not know itself.
fn is_extended(name: &str) -> bool {
    let is_word = |text: &str| {
        let is_edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        text.len() <= 63 && is_edge(text.chars().next()) && is_edge(text.chars().last()) && text.chars().all(is_inner)
    };
    name.split_once('/').is_some_and(|(domain, resource)| {
        let is_known =
            domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") || domain.starts_with("requests.");
        !is_known && domain.split('.').all(is_word) && is_word(resource)
    })
}
