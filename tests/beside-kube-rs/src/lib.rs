//! One operator written four times, and what each costs: `compare` runs them as processes of their own against the embedded API server
//! and prints one table.
//!
//! ```sh
//! cd tests/beside-kube-rs
//! cargo build --release
//! target/release/compare                                  # 500 parents, four minutes
//! target/release/compare --parents 10000 --quiet-s 60     # half an hour
//! target/release/compare --only koord --only "kube-rs tuned"
//! ```
//!
//! The operator keeps a StatefulSet, a Service, a ConfigMap and a Secret for each object of its kind, by server-side apply, and a status with
//! a condition. `compare` fails when two operators make different objects, and when the one on koord writes although nothing differs.
//!
//! | operator | what it is |
//! |---|---|
//! | koord | `bin/koord-operator`, with leader election, without a limit on requests |
//! | kube-rs guide | `Controller::new` and `owns`, as the documentation of `Controller` begins; applies everything in each reconcile |
//! | kube-rs tuned | what the optimization guide of kube-rs adds: streams without `managedFields`, predicates, a debounce of a second, 16 reconciles at once |
//! | kube-rs stores | the same with a store of whole objects for each kind of child, so that only what differs is applied |
//!
//! `owns` of kube-rs watches the metadata of children and keeps none of it. None of the three has leader election, metrics or health.
//! This library is what the operators share: the children as values.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::{StatefulSet, StatefulSetSpec},
        core::v1::{
            ConfigMap, Container, ContainerPort, PodSpec, PodTemplateSpec, ResourceRequirements, Secret, Service,
            ServicePort, ServiceSpec,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
    },
};

const PORT: i32 = 6379;

fn labels(name: &str) -> BTreeMap<String, String> {
    [("app", "cache"), ("cache", name)].map(|(label, value)| (label.to_owned(), value.to_owned())).into()
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { labels: Some(labels(name)), ..ObjectMeta::default() }
}

/// The servers.
pub fn stateful_set(name: &str, replicas: i32, memory: &str) -> StatefulSet {
    let requests =
        [("cpu", "1"), ("memory", memory)].map(|(what, amount)| (what.to_owned(), Quantity(amount.to_owned())));
    let container = Container {
        name: "cache".to_owned(),
        image: Some("cache:7".to_owned()),
        args: Some(vec!["--port".to_owned(), PORT.to_string()]),
        ports: Some(vec![ContainerPort {
            name: Some("cache".to_owned()),
            container_port: PORT,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        resources: Some(ResourceRequirements { requests: Some(requests.into()), ..ResourceRequirements::default() }),
        ..Container::default()
    };
    let pod = PodSpec { containers: vec![container], ..PodSpec::default() };
    StatefulSet {
        metadata: metadata(name),
        spec: Some(StatefulSetSpec {
            replicas: Some(replicas),
            service_name: Some(name.to_owned()),
            selector: LabelSelector { match_labels: Some(labels(name)), ..LabelSelector::default() },
            template: PodTemplateSpec { metadata: Some(metadata(name)), spec: Some(pod) },
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// The name by which clients find the servers.
pub fn service(name: &str) -> Service {
    let port = ServicePort {
        name: Some("cache".to_owned()),
        port: PORT,
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(name),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(labels(name)),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The configuration of the servers.
pub fn config_map(name: &str, memory: &str) -> ConfigMap {
    let text = format!("maxmemory {memory}\nappendonly yes\n");
    ConfigMap { metadata: metadata(name), data: Some([("cache.conf".to_owned(), text)].into()), ..ConfigMap::default() }
}

/// The password of the servers; of this name alone, because both operators must write the same.
pub fn secret(name: &str) -> Secret {
    let password = ByteString(format!("password of {name}").into_bytes());
    Secret { metadata: metadata(name), data: Some([("password".to_owned(), password)].into()), ..Secret::default() }
}
