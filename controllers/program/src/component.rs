//! What components of Kubernetes have in common that read a configuration file: the flags of leader election beside the file, the connection that the file
//! names, and the file as the program understood it.

use std::{fs, io, path::Path, sync::Arc};

use anyhow::{Context as _, Result, anyhow};
use koord_configuration::{LeaderElection, Problem};
use koord_resource::yaml::to_text;
use koord_runtime::{key::ObjectKey, lease::LeaderElectionConfig};
use kube::Config;
use serde_json::{Map, Value, json};

use crate::{
    flags::{span, switch},
    kubeconfig::{Selection, config, server_url},
};

/// The flags of leader election. They count whatever the configuration file says.
#[derive(Clone, Debug, Default, clap::Args)]
#[expect(clippy::struct_field_names, reason = "each has the name of its flag")]
pub struct ElectionFlags {
    /// Run leader election: only one of several replicas works.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set,
          value_parser = switch)]
    leader_elect: Option<bool>,
    /// How long other replicas wait before they take over a lease that is not renewed.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    leader_elect_lease_duration: Option<String>,
    /// How long the leader tries to renew before it stops leading.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    leader_elect_renew_deadline: Option<String>,
    /// How long replicas wait between attempts.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    leader_elect_retry_period: Option<String>,
    /// Kind of the resource lock; only leases exist.
    #[arg(long, hide = true, value_parser = ["leases"])]
    leader_elect_resource_lock: Option<String>,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE")]
    leader_elect_resource_namespace: Option<String>,
}

impl ElectionFlags {
    /// Lays the flags over the member `leaderElection` of a document.
    pub fn apply_to(&self, document: &mut Value) {
        let election = [
            ("leaderElect", self.leader_elect.map(Value::from)),
            ("leaseDuration", self.leader_elect_lease_duration.clone().map(Value::from)),
            ("renewDeadline", self.leader_elect_renew_deadline.clone().map(Value::from)),
            ("retryPeriod", self.leader_elect_retry_period.clone().map(Value::from)),
            ("resourceName", self.leader_elect_resource_name.clone().map(Value::from)),
            ("resourceNamespace", self.leader_elect_resource_namespace.clone().map(Value::from)),
        ];
        let set: Map<String, Value> =
            election.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        lay_over(document, "leaderElection", set);
    }
}

/// Lays values over a member of a document that is an object. What is none is left, for the check of the document.
pub fn lay_over(document: &mut Value, field: &str, set: Map<String, Value>) {
    let Some(members) = document.as_object_mut().filter(|_| !set.is_empty()) else { return };
    let known = members.entry(field).or_insert_with(|| json!({}));
    if known.is_null() {
        *known = json!({});
    }
    if let Some(known) = known.as_object_mut() {
        known.extend(set);
    }
}

/// Checks a span of time, and keeps its text.
fn duration(text: &str) -> Result<String, String> {
    span(text).map(|_| text.to_owned())
}

/// How a replica of this identity takes part in leader election; `None` where it leads at once.
pub fn election(configured: &LeaderElection, identity: String) -> Option<LeaderElectionConfig> {
    if !configured.leader_elect {
        return None;
    }
    let span = |span: koord_resource::Duration| span.to_std().unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let namespace = text(&configured.resource_namespace);
    let defaults = LeaderElectionConfig::new(namespace, text(&configured.resource_name), identity);
    Some(LeaderElectionConfig {
        lease: span(configured.lease_duration),
        renew: span(configured.renew_deadline),
        retry: span(configured.retry_period),
        ..defaults
    })
}

/// The API server: of the flag `--master` where it is given, else of the kubeconfig, or of the pod where that is empty.
///
/// # Errors
///
/// The URL or the kubeconfig cannot be used.
pub async fn api_server(master: Option<&str>, kubeconfig: &str) -> Result<Config> {
    let kubeconfig = Some(kubeconfig).filter(|file| !file.is_empty());
    let Some(master) = master.filter(|master| !master.is_empty()) else {
        return of_kubeconfig(kubeconfig).await;
    };
    let url = server_url(master).map_err(|reason| anyhow!("--master {reason}"))?;
    if kubeconfig.is_none() {
        return Ok(Config::new(url));
    }
    let mut config = of_kubeconfig(kubeconfig).await?;
    config.cluster_url = url;
    Ok(config)
}

async fn of_kubeconfig(file: Option<&str>) -> Result<Config> {
    let selection = Selection { file: file.map(Path::new), context: None };
    config(&selection).await.map_err(|error| anyhow!("{error}; {}", error.remedy()))
}

/// Logs which flags were given and have no effect, and which cipher suites were asked for and are not served.
pub fn warn_of_flags(without_effect: &[(&str, &str)], unserved_suites: &[String]) {
    if !unserved_suites.is_empty() {
        tracing::warn!(?unserved_suites, "these of --tls-cipher-suites are not safe, and not served");
    }
    for (flag, why) in without_effect {
        tracing::warn!(flag, "the flag has no effect: {why}");
    }
}

/// Logs what a configuration names that has no effect.
pub fn warn_of_configuration(problems: &[Problem]) {
    for problem in problems {
        tracing::warn!("the configuration names what has no effect: {problem}{}", suggestion(problem));
    }
}

/// What a problem suggests, as the rest of a sentence.
pub fn suggestion(problem: &Problem) -> String {
    problem.suggestion.as_deref().map(|text| format!("; {text}")).unwrap_or_default()
}

/// The pod in which the program runs, as the environment says by `POD_NAMESPACE` and `POD_NAME`; none where it says nothing.
pub fn program_pod(environment: impl Fn(&str) -> Option<String>) -> Option<ObjectKey> {
    let of = |variable| environment(variable).filter(|value| !value.is_empty());
    Some(ObjectKey::new(&of("POD_NAMESPACE")?, &of("POD_NAME")?))
}

/// Writes a configuration to the file of `--write-config-to`, as YAML.
///
/// # Errors
///
/// The file cannot be written; then no half of it is left.
pub fn write_configuration(effective: &Value, file: &Path) -> Result<()> {
    let text = to_text(effective);
    let written = match fs::metadata(file) {
        // A device or a pipe, such as /dev/stdout, is not replaced.
        Ok(known) if !known.is_file() => fs::write(file, text),
        _ => replace(file, &text),
    };
    written.with_context(|| format!("--write-config-to {} cannot be written", file.display()))
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let part = file.with_added_extension("part");
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// `/configz`: the configuration in force, with the names that it has in a file.
#[cfg(feature = "serving")]
pub fn configz(effective: &Value) -> axum::Router {
    let text: Arc<str> = configz_text(effective);
    changing_configz(move || Arc::clone(&text))
}

/// The same of a configuration that can change: `text` gives its [`configz_text`].
#[cfg(feature = "serving")]
pub fn changing_configz(text: impl Fn() -> Arc<str> + Clone + Send + Sync + 'static) -> axum::Router {
    let answer = move || {
        let text = text().to_string();
        async move { ([("content-type", "application/json")], text) }
    };
    axum::Router::new().route("/configz", axum::routing::get(answer))
}

/// What `/configz` answers.
pub fn configz_text(effective: &Value) -> Arc<str> {
    Arc::from(json!({"componentconfig": effective}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_in_which_pod_the_program_runs() {
        let pod = |set: &[(&str, &str)]| {
            program_pod(|variable| set.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned()))
        };
        let whole = pod(&[("POD_NAMESPACE", "koordinator-system"), ("POD_NAME", "koord-scheduler-0")]);
        assert_eq!(whole, Some(ObjectKey::new("koordinator-system", "koord-scheduler-0")));
        assert_eq!(pod(&[("POD_NAMESPACE", "koordinator-system")]), None);
        assert_eq!(pod(&[("POD_NAMESPACE", "koordinator-system"), ("POD_NAME", "")]), None);
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let error = write_configuration(&json!({"kind": "X"}), Path::new("/dev/full")).unwrap_err();
        assert!(format!("{error:#}").starts_with("--write-config-to /dev/full cannot be written"), "{error:#}");
        assert!(fs::metadata("/dev/full").is_ok_and(|device| !device.is_file()));
        assert!(write_configuration(&json!({}), Path::new("/dev/null")).is_ok());
    }
}
