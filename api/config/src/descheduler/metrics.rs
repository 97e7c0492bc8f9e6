//! Where strategies get measured usage from, and the connection to it.

use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

/// Where utilization is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct MetricsUtilization {
    /// Whether the metrics server is asked; `source` says the same.
    pub metrics_server: bool,
    /// Who is asked.
    pub source: Option<MetricsSource>,
    /// How Prometheus is asked.
    pub prometheus: Option<PrometheusQuery>,
}

/// Who measures utilization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum MetricsSource {
    /// The metrics server, by metrics.k8s.io.
    #[default]
    KubernetesMetrics,
    /// Prometheus.
    Prometheus,
}

/// How Prometheus is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PrometheusQuery {
    /// A query that gives a number from 0 to 1 for each `instance`, which is the name of a node.
    pub query: String,
}

/// A source of measured usage. The metrics server is asked without one, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MetricsProvider {
    /// Which source it is.
    pub source: MetricsSource,
    /// Where Prometheus is.
    pub prometheus: Option<Prometheus>,
}

/// Where Prometheus is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct Prometheus {
    /// Its URL, without `/api/v1`.
    pub url: String,
    /// The token that requests have. Without one it is that of the service account of the pod, where the URL begins with https.
    pub auth_token: Option<AuthToken>,
}

/// A token of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuthToken {
    /// The Secret that has it, as `prometheusAuthToken`.
    pub secret_reference: SecretReference,
}

/// A Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl MetricsUtilization {
    /// Whether a query of Prometheus measures.
    pub(super) fn is_prometheus(&self) -> bool {
        self.source == Some(MetricsSource::Prometheus) && !self.metrics_server
    }

    fn check(&self, problems: &mut Problems) {
        let query = self.prometheus.as_ref().map_or("", |prometheus| &prometheus.query);
        match self.source {
            Some(_) if self.metrics_server => {
                problems.add(&["metricsServer"], "cannot be set together with source, which says the same");
            }
            Some(MetricsSource::Prometheus) if query.is_empty() => {
                problems.add(&["prometheus", "query"], "must be set where Prometheus measures");
            }
            None if !self.metrics_server => problems.add(&["source"], "must be set"),
            Some(_) | None => {}
        }
    }
}

impl Prometheus {
    fn check(&self, problems: &mut Problems) {
        let is_secure = self.url.starts_with("https://");
        if !is_secure && !self.url.starts_with("http://") {
            problems.add(&["url"], format!("{:?} must begin with https:// or http://", self.url));
        }
        if self.auth_token.is_some() && !is_secure {
            let remedy = "let the url begin with https://, or leave the token out".to_owned();
            problems.suggest(&["authToken"], "a token is not sent without TLS", Some(remedy));
        }
    }
}

impl SecretReference {
    fn check(&self, problems: &mut Problems) {
        for (field, text) in [("namespace", &self.namespace), ("name", &self.name)] {
            if text.is_empty() {
                problems.add(&[field], "must be set");
            }
        }
    }
}

/// What is wrong between providers.
pub(super) fn check_providers(providers: &[MetricsProvider], problems: &mut Problems) {
    for (index, provider) in providers.iter().enumerate() {
        let at = index.to_string();
        if providers.iter().take(index).any(|earlier| earlier.source == provider.source) {
            problems.add(&["metricsProviders", &at, "source"], format!("{:?} stands twice", provider.source));
        }
        match (provider.source, &provider.prometheus) {
            (MetricsSource::Prometheus, None) => {
                problems.add(&["metricsProviders", &at, "prometheus", "url"], "must be set");
            }
            (MetricsSource::KubernetesMetrics, Some(_)) => {
                let remedy = "set source to Prometheus, or leave it out".to_owned();
                let keys = ["metricsProviders", &at, "prometheus"];
                problems.suggest(&keys, "the metrics server is asked through the API server", Some(remedy));
            }
            _ => {}
        }
    }
}
