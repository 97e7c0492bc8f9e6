//! Whether `slo-controller-config` has keys and values that a component reads.

use koord_lint::configuration;
use koord_manager_assembly::reviewer::Reviewer;
use koord_program::findings::Report;
use koord_resource::controller::ResourceKind;
use koord_types::slo_config::COLOCATION_CONFIG;

use crate::{Options, cluster::Cluster};

/// The label by which the webhook's entry selects the ConfigMap.
const CHECKED: (&str, &str) = ("koordinator.sh/configmap-type", "slo-controller-config");

pub(crate) async fn look(cluster: &Cluster, options: &Options<'_>, report: &mut Report) {
    let (namespace, name) = (options.config_namespace, options.slo_config_name);
    let object = format!("ConfigMap {namespace}/{name}");
    let read = cluster.get(&ResourceKind::CONFIG_MAP.url_path(namespace, Some(name))).await;
    let Some(found) = report.read(read) else { return };
    let Some(found) = found else {
        return report.warning(
            object,
            "it is not there: defaults hold, and colocation is off",
            format!("create it, with {COLOCATION_CONFIG}: '{{\"enable\":true}}' to switch colocation on"),
        );
    };
    let edit = format!("kubectl -n {namespace} edit configmap {name}");
    let reviewer = match Reviewer::new(options.feature_gates) {
        Ok(reviewer) => reviewer,
        Err(error) => return report.warning(object, format!("it is not checked: {error}"), "fix --feature-gates"),
    };
    for mistake in configuration::mistakes(&reviewer, &found) {
        let object = format!("{object}, key {}", mistake.key);
        let suggestion = mistake.suggestion.map(|suggestion| format!(" ({suggestion})")).unwrap_or_default();
        let remedy = format!("fix the key{suggestion}: {edit}");
        if mistake.unreadable {
            let problem = format!(
                "{}; koord-manager goes on with the key's last good value, and a new leader with the default",
                mistake.message
            );
            report.error(object, problem, remedy);
        } else {
            report.warning(object, mistake.message, remedy);
        }
    }
    if found["metadata"]["labels"][CHECKED.0] != CHECKED.1 {
        report.note(
            object,
            format!("it lacks the label {}={}, so that no webhook checks changes", CHECKED.0, CHECKED.1),
            format!("kubectl -n {namespace} label configmap {name} {}={}", CHECKED.0, CHECKED.1),
        );
    }
}
