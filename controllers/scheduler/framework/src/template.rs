//! Pods and nodes of the API as the engine knows them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::{
    api::core::v1::{Container, Node as ApiNode, NodeStatus, PodSpec},
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
};
use koord_resource::{Quantity, ResourceList, quantity::ParseQuantityError};
use koord_scheduling::{Bounds, NodeAffinity, PodRequests, PreferredNodes, kubernetes_qos};

use crate::{
    affinity::{PodAffinity, SpreadConstraint},
    dynamic::NamedClaim,
    host_ports::{HostPort, HostPorts},
    labels::Labels,
    node::Node,
    pod::Template,
    volume::Volume,
};

/// Annotations that record what a pod was given, beside those that say what it wants.
const GIVEN: [&str; 4] = ["device-allocated", "reservation-allocated", "reservation-current-owner", "resource-status"];

/// Annotations of nodes that device plugins of vendors read.
const NODE_LOCKS: [&str; 2] = ["cambricon.com/dsmlu.lock", "hami.io/mutex.lock"];

/// What the scheduler assumes that a container uses which requests nothing: a tenth of a core, and 200 MiB.
const ASSUMED: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "200Mi")];

impl Template {
    /// The template of a pod. An error where an amount is no quantity, which no API server stores.
    pub fn of(
        namespace: &str,
        labels: Labels,
        annotations: &BTreeMap<&str, &str>,
        spec: &PodSpec,
    ) -> Result<Self, ParseQuantityError> {
        let terms = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let preferred = terms.and_then(|terms| terms.preferred_during_scheduling_ignored_during_execution.as_deref());
        let requests = requests(spec)?;
        let wishes = annotations.iter().filter(|(key, _)| is_wish(key));
        let texts = labels.iter().chain(annotations.iter().map(|(key, value)| (*key, *value)));
        let text_length = length(spec) + texts.map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let spread = spec.topology_spread_constraints.iter().flatten();
        Ok(Self {
            resource_claims: NamedClaim::of(spec),
            pod_affinity: PodAffinity::of(&namespace.into(), &labels, spec),
            spread: spread.map(|constraint| SpreadConstraint::of(constraint, &labels)).collect(),
            controller: None,
            images: images(spec),
            namespace: namespace.into(),
            scheduler: spec.scheduler_name.as_deref().unwrap_or("default-scheduler").into(),
            priority: spec.priority.unwrap_or(0),
            labels,
            annotations: wishes.map(|(key, value)| (*key, *value)).collect(),
            requests,
            overhead: overhead(spec)?,
            limits: limits(spec)?,
            kubernetes_qos: qos(spec)?,
            preempts: spec.preemption_policy.as_deref() != Some("Never"),
            assumed_usage: assumed_usage(spec)?,
            affinity: NodeAffinity::required(spec),
            preferred: PreferredNodes::new(preferred.unwrap_or_default()),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
            host_ports: host_ports(spec),
            volumes: spec.volumes.iter().flatten().filter_map(Volume::of).collect(),
            text_length,
        })
    }

    /// The same, of a pod whose containers are resized: it counts with what these request.
    pub fn resized(self, spec: &PodSpec) -> Result<Self, ParseQuantityError> {
        Ok(Self { requests: requests(spec)?, assumed_usage: assumed_usage(spec)?, ..self })
    }
}

impl Node {
    /// The node of an object of the API. An error where an amount is no quantity.
    pub fn of(object: &ApiNode) -> Result<Self, ParseQuantityError> {
        let labels = object.metadata.labels.iter().flatten();
        let annotations = object.metadata.annotations.iter().flatten();
        let spec = object.spec.clone().unwrap_or_default();
        let images = object.status.iter().flat_map(|NodeStatus { images, .. }| images.iter().flatten());
        let allocatable = object.status.as_ref().and_then(|NodeStatus { allocatable, .. }| allocatable.as_ref());
        let allocatable = allocatable.into_iter().flatten();
        Ok(Self {
            name: object.metadata.name.as_deref().unwrap_or_default().into(),
            labels: labels.map(|(key, value)| (&**key, &**value)).collect(),
            annotations: of_koordinator(annotations.map(|(key, value)| (&**key, &**value))),
            taints: spec.taints.unwrap_or_default(),
            unschedulable: spec.unschedulable.unwrap_or(false),
            allocatable: allocatable
                .map(|(name, amount)| Ok((&**name, amount.0.parse()?)))
                .collect::<Result<_, _>>()?,
            images: images
                .flat_map(|image| image.names.iter().flatten().map(|name| (&**name, image.size_bytes.unwrap_or(0))))
                .map(|(name, size)| (Arc::from(name), size))
                .collect(),
        })
    }
}

type Amounts = BTreeMap<String, ApiQuantity>;

/// What a container or a pod says about amounts.
type OfContainer = fn(&Container) -> Option<&Amounts>;
type OfPod = fn(&PodSpec) -> Option<&Amounts>;

/// Which of a pod's annotations record what it was given.
pub fn given(annotations: &BTreeMap<&str, &str>) -> Labels {
    annotations.iter().filter(|(key, _)| is_given(key)).map(|(key, value)| (*key, *value)).collect()
}

/// Which of these annotations are Koordinator's.
pub fn of_koordinator<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Labels {
    annotations.into_iter().filter(|(key, _)| is_of_koordinator(key) || NODE_LOCKS.contains(key)).collect()
}

fn is_of_koordinator(key: &str) -> bool {
    // PodGroups are older than Koordinator.
    let is_domain = |domain: &str| {
        domain == "koordinator.sh"
            || domain.ends_with(".koordinator.sh")
            || domain == "pod-group.scheduling.sigs.k8s.io"
    };
    key.split_once('/').is_some_and(|(domain, _)| is_domain(domain))
}

/// Whether an annotation of a pod says how it is to be placed.
pub fn is_wish(key: &str) -> bool {
    is_of_koordinator(key) && !is_given(key)
}

/// Whether an annotation records what a pod was given.
pub fn is_given(key: &str) -> bool {
    key.strip_prefix("scheduling.koordinator.sh/").is_some_and(|name| GIVEN.contains(&name))
}

/// What the pod requests, with its overhead.
fn requests(spec: &PodSpec) -> Result<ResourceList, ParseQuantityError> {
    let mut requests = amounts(spec, of_container, of_pod)?;
    requests.add(&overhead(spec)?);
    Ok(requests)
}

/// How long a text of this would be.
fn length(value: &impl serde::Serialize) -> usize {
    /// Counts what is written.
    struct Length(usize);

    impl std::io::Write for Length {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0 += text.len();
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut length = Length(0);
    // Where it cannot be written, what was until then counts.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}

/// The amounts of all resources that the containers or the pod name, without the overhead.
fn amounts(spec: &PodSpec, of_container: OfContainer, of_pod: OfPod) -> Result<ResourceList, ParseQuantityError> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let lists = containers.filter_map(of_container).chain(of_pod(spec));
    let names: BTreeSet<&str> = lists.flatten().map(|(name, _)| &**name).collect();
    let sources = (of_container, of_pod);
    names.into_iter().map(|name| Ok((name, amount(spec, name, &Quantity::default(), sources)?))).collect()
}

fn assumed_usage(spec: &PodSpec) -> Result<[i64; 2], ParseQuantityError> {
    let overhead = overhead(spec)?;
    let assumed = |(name, text): (&str, &str)| {
        // Where a pod requests something as a whole, the amounts that its containers name are all that they request.
        let is_whole = of_pod(spec).is_some_and(|whole| !whole.is_empty());
        let is_named = is_whole && requests(spec)?.contains(name);
        let absent = if is_named { Quantity::default() } else { text.parse()? };
        let used = amount(spec, name, &absent, (of_container, of_pod))? + overhead.amount(name);
        Ok(koord_scheduling::count(name, &used))
    };
    let [cpu, memory] = ASSUMED.map(assumed);
    Ok([cpu?, memory?])
}

fn overhead(spec: &PodSpec) -> Result<ResourceList, ParseQuantityError> {
    let named = spec.overhead.iter().flatten();
    named.map(|(name, amount)| Ok((&**name, amount.0.parse()?))).collect()
}

/// The overhead adds to limits that are not 0, and limits nothing itself (`PodLimits` of k8s.io/component-helpers).
fn limits(spec: &PodSpec) -> Result<ResourceList, ParseQuantityError> {
    let mut limits = amounts(spec, limits_of_container, limits_of_pod)?;
    let overhead = overhead(spec)?.filtered(|name, _| !limits.amount(name).is_zero());
    limits.add(&overhead);
    Ok(limits)
}

/// Kubernetes' own QoS class: that of the pod as a whole where it has resources, and else of all containers.
fn qos(spec: &PodSpec) -> Result<&'static str, ParseQuantityError> {
    let amount = |amounts: Option<&Amounts>, name: &str| {
        let amount = amounts.and_then(|amounts| amounts.get(name));
        amount.map(|amount| amount.0.parse::<Quantity>()).transpose()
    };
    let bounds = |requests, limits, name| Ok((amount(requests, name)?, amount(limits, name)?));
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let resources: Vec<(Option<&Amounts>, Option<&Amounts>)> = match spec.resources {
        Some(_) => vec![(of_pod(spec), limits_of_pod(spec))],
        None => containers.map(|container| (of_container(container), limits_of_container(container))).collect(),
    };
    let amounts: Vec<[(Option<Quantity>, Option<Quantity>); 2]> = resources
        .into_iter()
        .map(|(requests, limits)| Ok([bounds(requests, limits, "cpu")?, bounds(requests, limits, "memory")?]))
        .collect::<Result<_, ParseQuantityError>>()?;
    let bounds = amounts.iter().map(|resources| {
        resources.each_ref().map(|(request, limit)| Bounds { request: request.as_ref(), limit: limit.as_ref() })
    });
    Ok(kubernetes_qos(bounds))
}

/// The amount of one resource without the overhead, where containers that do not name it count `absent`.
fn amount(
    spec: &PodSpec,
    name: &str,
    absent: &Quantity,
    (of_container, of_pod): (OfContainer, OfPod),
) -> Result<Quantity, ParseQuantityError> {
    let amount = |amounts: Option<&Amounts>| {
        let amount = amounts.and_then(|amounts| amounts.get(name));
        amount.map(|amount| amount.0.parse::<Quantity>()).transpose()
    };
    let container = |container| Ok(amount(of_container(container))?.unwrap_or_else(|| absent.clone()));
    let mut requests = PodRequests::<Quantity>::default();
    for each in &spec.containers {
        requests.container(container(each)?);
    }
    for each in spec.init_containers.iter().flatten() {
        requests.init_container(container(each)?, each.restart_policy.as_deref() == Some("Always"));
    }
    let whole = amount(of_pod(spec))?;
    Ok(requests.total(|sum| whole.unwrap_or(sum), None))
}

fn of_container(container: &Container) -> Option<&Amounts> {
    container.resources.as_ref()?.requests.as_ref()
}

fn of_pod(spec: &PodSpec) -> Option<&Amounts> {
    spec.resources.as_ref()?.requests.as_ref()
}

fn limits_of_container(container: &Container) -> Option<&Amounts> {
    container.resources.as_ref()?.limits.as_ref()
}

fn limits_of_pod(spec: &PodSpec) -> Option<&Amounts> {
    spec.resources.as_ref()?.limits.as_ref()
}

fn host_ports(spec: &PodSpec) -> HostPorts {
    // Init containers that are restarted run beside the others.
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let ports = ports.filter_map(|port| {
        let text = |text: &Option<String>, default: &str| -> Arc<str> {
            text.as_deref().filter(|text| !text.is_empty()).unwrap_or(default).into()
        };
        Some(HostPort {
            port: port.host_port.filter(|port| *port > 0)?,
            protocol: text(&port.protocol, "TCP"),
            address: text(&port.host_ip, HostPort::ANY_ADDRESS),
        })
    });
    ports.collect()
}

/// The images of all containers, as container runtimes name them.
fn images(spec: &PodSpec) -> Box<[Arc<str>]> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    containers.map(|container| tagged(container.image.as_deref().unwrap_or_default())).collect()
}

/// The name of an image with its tag, which is `latest` where it has none.
fn tagged(image: &str) -> Arc<str> {
    let last = image.rsplit_once('/').map_or(image, |(_, last)| last);
    if last.contains(':') { image.into() } else { format!("{image}:latest").into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(spec: serde_json::Value) -> Template {
        Template::of("ns", Labels::default(), &BTreeMap::new(), &serde_json::from_value(spec).unwrap()).unwrap()
    }

    #[test]
    fn requests_are_those_of_all_phases_and_absent_ones_are_assumed_for_scores() {
        let requests = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}, "name": "c"});
        let template = template(json!({
            "containers": [requests("500m"), {"name": "silent"}],
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"example.com/gpu": "1"}}},
                requests("2"),
            ],
            "overhead": {"memory": "1Mi"},
        }));
        let amount = |name: &str| template.requests.amount(name).to_string();
        assert_eq!(["cpu", "memory", "example.com/gpu"].map(amount), ["2", "1Mi", "1"]);
        assert_eq!(serde_json::to_value(&template.overhead).unwrap(), json!({"memory": "1Mi"}));
        // The init container of 2 cores beside the sidecar, of which a tenth is assumed; three times 200 MiB and the overhead.
        assert_eq!(template.assumed_usage, [2100, (3 * 200 + 1) << 20]);
    }

    #[test]
    fn what_the_pod_requests_as_a_whole_counts_instead_of_its_containers() {
        let template = template(json!({
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "3", "example.com/gpu": "2"}}}],
            "resources": {"requests": {"cpu": "1"}},
        }));
        assert_eq!((template.requests.amount("cpu").to_string(), template.assumed_usage[0]), ("1".to_owned(), 1000));
        assert_eq!(template.requests.amount("example.com/gpu").to_string(), "2");
    }

    #[test]
    fn beside_what_a_pod_requests_as_a_whole_nothing_is_assumed_of_what_a_container_names() {
        let assumed = |memory: serde_json::Value| {
            let containers = json!([{"name": "a", "resources": {"requests": memory}}, {"name": "b"}]);
            template(json!({"containers": containers, "resources": {"requests": {"cpu": "1"}}})).assumed_usage
        };
        assert_eq!(assumed(json!({"memory": "1Mi"})), [1000, 1 << 20]);
        assert_eq!(assumed(json!({})), [1000, 400 << 20]);
    }

    #[test]
    fn an_overhead_adds_to_limits_and_limits_nothing_itself() {
        let container = |limits: serde_json::Value| json!({"name": "c", "resources": {"limits": limits}});
        let spec = |limits| json!({"containers": [container(limits)], "overhead": {"cpu": "1", "memory": "1Mi"}});
        let limits = |limits| template(spec(limits)).limits;
        assert!(limits(json!({})).is_empty());
        let limits = limits(json!({"cpu": "2"}));
        assert_eq!((limits.amount("cpu").to_string(), limits.get("memory")), ("3".to_owned(), None));
    }

    #[test]
    fn an_overhead_does_not_add_to_limits_of_0() {
        let container = |cpu: &str| json!({"name": "c", "resources": {"limits": {"cpu": cpu, "memory": "1Mi"}}});
        let limits = |mut spec: serde_json::Value| {
            spec["overhead"] = json!({"cpu": "1", "memory": "1Mi"});
            let template = template(spec);
            ["cpu", "memory"].map(|name| template.limits.get(name).map(ToString::to_string).unwrap_or_default())
        };
        assert_eq!(limits(json!({"containers": [container("0")]})), ["0", "2Mi"]);
        assert_eq!(limits(json!({"containers": [container("0"), container("1m")]})), ["1001m", "3Mi"]);
        let whole = json!({"containers": [container("1")], "resources": {"limits": {"cpu": "0"}}});
        assert_eq!(limits(whole), ["0", "2Mi"], "the limit of the pod as a whole counts");
    }

    #[test]
    fn the_class_of_kubernetes_follows_from_the_containers_or_the_pod_as_a_whole() {
        let container = |part: &str, cpu: &str| json!({"name": "c", "resources": {part: {"cpu": cpu, "memory": "1"}}});
        let class = |containers: serde_json::Value| template(json!({"containers": containers})).kubernetes_qos;
        assert_eq!(class(json!([{"name": "c"}])), "BestEffort");
        assert_eq!(class(json!([container("requests", "1")])), "Burstable");
        assert_eq!(class(json!([container("limits", "1")])), "Guaranteed");
        let whole = |resources: serde_json::Value| {
            template(json!({"resources": resources, "containers": [container("limits", "1")]})).kubernetes_qos
        };
        assert_eq!(whole(json!({})), "BestEffort", "what the pod has as a whole decides alone");
        assert_eq!(whole(json!({"requests": {"cpu": "1"}})), "Burstable");
    }

    #[test]
    fn images_of_all_containers_count_under_their_tags() {
        let container = |image: &str| json!({"name": "c", "image": image});
        let template = template(json!({
            "initContainers": [container("registry:5000/init")],
            "containers": [container("web:1"), container("a/web"), container("web@sha256:0")],
        }));
        let images: Vec<&str> = template.images.iter().map(|image| &**image).collect();
        assert_eq!(images, ["registry:5000/init:latest", "web:1", "a/web:latest", "web@sha256:0"]);
    }

    #[test]
    fn all_that_a_user_may_write_counts_for_the_length_of_a_template() {
        let long = "x".repeat(1000);
        let length = |spec: serde_json::Value| template(spec).text_length;
        let few = length(json!({"containers": [{"name": "c"}]}));
        let term = json!({"topologyKey": long, "labelSelector": {"matchLabels": {&*long: "a"}}});
        let terms = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        for (spec, more) in [
            (json!({"containers": [{"name": "c"}], "nodeSelector": {&*long: "a"}}), 1000),
            (json!({"containers": [{"name": "c"}], "tolerations": [{"key": long}]}), 1000),
            (json!({"containers": [{"name": "c"}], "affinity": terms}), 2000),
            (json!({"containers": [{"name": "c", "resources": {"requests": {&*long: "1"}}}]}), 1000),
        ] {
            assert!((few + more..few + more + 300).contains(&length(spec.clone())), "{spec}");
        }
        let labels = [(&*long, &*long)].into_iter().collect();
        let labelled = Template::of("ns", labels, &BTreeMap::from([(&*long, "a")]), &PodSpec::default()).unwrap();
        assert!(labelled.text_length > 3000);
    }

    #[test]
    fn ports_of_the_host_are_those_of_containers_that_go_on_running() {
        let port = |port: i32| json!({"name": "c", "ports": [{"containerPort": 1, "hostPort": port}]});
        let mut sidecar = port(3);
        sidecar["restartPolicy"] = json!("Always");
        let template = template(json!({"containers": [port(1), port(0)], "initContainers": [port(2), sidecar]}));
        assert_eq!(template.host_ports.iter().map(|port| port.port).collect::<Vec<_>>(), [1, 3]);
    }
}
