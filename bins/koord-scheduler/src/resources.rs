//! What every pod requests, and its limits: `/metrics/resources`, as kube-scheduler has it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use koord_resource::{Quantity, ResourceList};
use koord_runtime::metrics::{write_gauge_head, write_series};
use koord_scheduler_framework::pod::Pod;
use koord_scheduler_runtime::EngineReader;

use crate::services::refused;

/// How long the scheduler may take to give its pods: decisions are made in between.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A metric with a series for every resource of every pod.
struct Family {
    name: &'static str,
    help: &'static str,
    amounts: fn(&Pod) -> &ResourceList,
}

const FAMILIES: [Family; 2] = [
    Family {
        name: "kube_pod_resource_limit",
        help: "The limits of every pod, in the unit of the resource.",
        amounts: |pod| &pod.template.limits,
    },
    Family {
        name: "kube_pod_resource_request",
        help: "What every pod requests, in the unit of the resource.",
        amounts: |pod| &pod.template.requests,
    },
];

/// The route. The replica that schedules answers; others have no series.
pub(crate) fn routes(reader: EngineReader) -> Router {
    Router::new().route("/metrics/resources", get(answer).with_state(reader))
}

async fn answer(State(reader): State<EngineReader>) -> Response {
    match tokio::time::timeout(ANSWER_MAX, reader.pods()).await {
        Ok(pods) => {
            let text = rendered(&pods.unwrap_or_default());
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
        }
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the scheduler does not answer in time"),
    }
}

fn rendered(pods: &[Arc<Pod>]) -> String {
    let mut text = String::new();
    let pods: BTreeMap<&str, &Arc<Pod>> =
        pods.iter().filter(|pod| !pod.is_reservation()).map(|pod| (pod.key.as_str(), pod)).collect();
    for Family { name, help, amounts } in FAMILIES {
        write_gauge_head(&mut text, name, help);
        for pod in pods.values() {
            let template = &pod.template;
            let priority = template.priority.to_string();
            let listed = amounts(pod);
            for (resource, amount) in listed.iter().filter(|(_, amount)| !amount.is_zero()) {
                let labels = [
                    ("namespace", pod.key.namespace()),
                    ("pod", pod.key.name()),
                    ("node", pod.node.as_deref().unwrap_or_default()),
                    ("scheduler", &template.scheduler),
                    ("priority", &priority),
                    ("resource", resource),
                    ("unit", unit(resource)),
                ];
                write_series(&mut text, name, &labels, value(resource, amount));
            }
        }
    }
    text
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "cores",
        "memory" | "storage" | "ephemeral-storage" => "bytes",
        _ if resource.starts_with("hugepages-") => "bytes",
        _ if resource.starts_with("attachable-volumes-") => "integer",
        _ => "",
    }
}

fn value(resource: &str, amount: &Quantity) -> f64 {
    if resource == "cpu" { amount.milli_value() as f64 / 1000.0 } else { amount.value() as f64 }
}

#[cfg(test)]
mod tests {
    use koord_runtime::key::ObjectKey;
    use koord_scheduler_framework::pod::Template;

    use super::*;

    #[test]
    fn every_resource_of_every_pod_has_its_unit() {
        let list = |amounts: &[(&str, &str)]| -> ResourceList {
            amounts.iter().map(|(name, amount)| (*name, amount.parse::<Quantity>().unwrap())).collect()
        };
        let template = Template {
            scheduler: "koord-scheduler".into(),
            priority: 9,
            requests: list(&[("cpu", "1500m"), ("memory", "1Gi"), ("example.com/x", "2"), ("storage", "0")]),
            limits: list(&[("hugepages-2Mi", "2Mi")]),
            ..Template::default()
        };
        let pod = Pod {
            key: ObjectKey::new("ns", "p"),
            template: Arc::new(template),
            node: Some("n1".into()),
            ..Pod::default()
        };
        let text = rendered(&[Arc::new(pod)]);
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let of = |metric: &str, resource: &str, unit: &str, value: &str| {
            format!(
                "kube_pod_resource_{metric}{{namespace=\"ns\",pod=\"p\",node=\"n1\",scheduler=\"koord-scheduler\",priority=\"9\",\
                 resource=\"{resource}\",unit=\"{unit}\"}} {value}"
            )
        };
        let expected = [
            of("limit", "hugepages-2Mi", "bytes", "2097152"),
            of("request", "cpu", "cores", "1.5"),
            of("request", "example.com/x", "", "2"),
            of("request", "memory", "bytes", "1073741824"),
        ];
        assert_eq!(series, expected);
    }

    #[test]
    fn the_name_of_a_scheduler_may_be_any_text() {
        let template = Template {
            scheduler: "x\"} 9\nkube_pod_resource_request{pod=\"of-another\\".into(),
            requests: [("cpu", "1".parse::<Quantity>().unwrap())].into_iter().collect(),
            ..Template::default()
        };
        let pod = Pod { key: ObjectKey::new("ns", "p"), template: Arc::new(template), ..Pod::default() };
        let text = rendered(&[Arc::new(pod)]);
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let escaped = r#"scheduler="x\"} 9\nkube_pod_resource_request{pod=\"of-another\\","#;
        assert!(matches!(series[..], [line] if line.contains(escaped) && line.ends_with("} 1")), "{text}");
    }
}
