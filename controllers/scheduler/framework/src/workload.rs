//! What says which pods belong together: services, and the controllers of pods.

use std::collections::BTreeMap;

use k8s_openapi::{NamespaceResourceScope, Resource, apimachinery::pkg::apis::meta::v1::LabelSelector};
use koord_core::key::ObjectKey;
use koord_scheduling::Selector;
use serde::Deserialize;

pub use crate::pod::{Controller, ControllerKind};
use crate::{object::Objects, pod::Template};

/// A Service, as far as it says which pods it is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Service {
    spec: ServiceSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ServiceSpec {
    selector: Option<BTreeMap<String, String>>,
}

/// A ReplicationController, as far as it says which pods it is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicationController {
    spec: ServiceSpec,
}

/// A ReplicaSet, as far as it says which pods it is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    spec: ControllerSpec,
}

/// A StatefulSet, as far as it says which pods it is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    spec: ControllerSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ControllerSpec {
    selector: Option<LabelSelector>,
}

macro_rules! resource {
    ($type:ident, $group:literal, $api_version:literal, $path:literal) => {
        impl Resource for $type {
            const API_VERSION: &'static str = $api_version;
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($type);
            const VERSION: &'static str = "v1";
            const URL_PATH_SEGMENT: &'static str = $path;
            type Scope = NamespaceResourceScope;
        }
    };
}

resource!(Service, "", "v1", "services");
resource!(ReplicationController, "", "v1", "replicationcontrollers");
resource!(ReplicaSet, "apps", "apps/v1", "replicasets");
resource!(StatefulSet, "apps", "apps/v1", "statefulsets");

/// How often any of them has changed.
pub fn changes(objects: &Objects) -> u64 {
    let controllers = objects.changes::<ReplicationController>() + objects.changes::<ReplicaSet>();
    controllers + objects.changes::<StatefulSet>() + objects.changes::<Service>()
}

/// The pods to which a pod belongs: all that its services and its controller select; none where nothing says so.
pub fn selector(template: &Template, objects: &Objects) -> Option<Selector> {
    let is_here = |key: &ObjectKey| key.namespace() == &*template.namespace;
    let services =
        objects.of::<Service>().filter(|(key, _)| is_here(key)).filter_map(|(_, one)| one.spec.selector.as_ref());
    let is_selected = |service: &&BTreeMap<String, String>| {
        service.iter().all(|(key, value)| template.labels.get(key) == Some(value))
    };
    let mut equal: Vec<(String, String)> = services.filter(is_selected).flat_map(Clone::clone).collect();
    let mut expressions = Vec::new();
    if let Some(Controller { kind, name }) = &template.controller {
        let key = format!("{}/{name}", template.namespace);
        let selector = match kind {
            ControllerKind::ReplicationController => {
                let of = objects.get::<ReplicationController>(&key);
                equal.extend(of.into_iter().filter_map(|of| of.spec.selector.clone()).flatten());
                None
            }
            ControllerKind::ReplicaSet => objects.get::<ReplicaSet>(&key).and_then(|of| of.spec.selector.as_ref()),
            ControllerKind::StatefulSet => objects.get::<StatefulSet>(&key).and_then(|of| of.spec.selector.as_ref()),
        };
        let labels = selector.and_then(|selector| selector.match_labels.clone());
        equal.extend(labels.into_iter().flatten());
        expressions.extend(selector.and_then(|selector| selector.match_expressions.clone()).into_iter().flatten());
    }
    // Whatever selects the pod asks for the same values.
    let match_labels = Some(equal.into_iter().collect());
    let selector = LabelSelector { match_labels, match_expressions: Some(expressions) };
    Selector::stored(&selector).filter(|selector| !selector.is_everything())
}

#[cfg(test)]
mod tests {
    use std::{any::TypeId, sync::Arc};

    use koord_core::uid::Uid;
    use serde_json::{Value, json};

    use super::*;
    use crate::{cluster::Cluster, object::Object};

    fn set<T: serde::de::DeserializeOwned + Send + Sync + 'static>(
        cluster: &mut Cluster,
        namespace: &str,
        name: &str,
        selector: &Value,
    ) {
        let object: T = serde_json::from_value(json!({"spec": {"selector": selector}})).unwrap();
        cluster.set_object(Object::new(ObjectKey::new(namespace, name), Uid::from(name), false, Arc::new(object)));
    }

    #[test]
    fn a_pod_belongs_to_what_its_services_and_its_controller_select() {
        let mut cluster = Cluster::default();
        let labels = [("app", "web"), ("tier", "front"), ("hash", "1")].into_iter().collect();
        let controller = Controller::of("apps/v1", "ReplicaSet", "web-1");
        let template = Template { namespace: "ns".into(), labels, controller, ..Template::default() };
        let by = |cluster: &Cluster, template: &Template| {
            selector(template, cluster.objects()).map(|selector| selector.to_string()).unwrap_or_default()
        };
        assert_eq!(by(&cluster, &template), "");
        set::<Service>(&mut cluster, "ns", "web", &json!({"app": "web"}));
        set::<Service>(&mut cluster, "ns", "front", &json!({"tier": "front"}));
        set::<Service>(&mut cluster, "ns", "other", &json!({"app": "db"}));
        set::<Service>(&mut cluster, "ns", "without", &json!(null));
        set::<Service>(&mut cluster, "elsewhere", "web", &json!({"hash": "1"}));
        assert_eq!(by(&cluster, &template), "app=web,tier=front");
        let before = changes(cluster.objects());
        let of_controller =
            json!({"matchLabels": {"hash": "1"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]});
        set::<ReplicaSet>(&mut cluster, "ns", "web-1", &of_controller);
        assert_eq!(by(&cluster, &template), "app=web,hash=1,!old,tier=front");
        set::<ReplicationController>(&mut cluster, "ns", "web-1", &json!({"hash": "2"}));
        set::<StatefulSet>(&mut cluster, "ns", "web-1", &json!({"matchLabels": {"hash": "3"}}));
        for (api_version, kind, expected) in [
            ("apps/v1", "ReplicaSet", "app=web,hash=1,!old,tier=front"),
            ("v1", "ReplicationController", "app=web,hash=2,tier=front"),
            ("apps/v1", "StatefulSet", "app=web,hash=3,tier=front"),
            ("batch/v1", "Job", "app=web,tier=front"),
            ("example.com/v1", "ReplicaSet", "app=web,tier=front"),
        ] {
            let controller = Controller::of(api_version, kind, "web-1");
            assert_eq!(by(&cluster, &Template { controller, ..template.clone() }), expected, "{kind}");
        }
        for name in ["ns/web", "ns/front"] {
            cluster.remove_object(TypeId::of::<Service>(), name);
        }
        assert_eq!(by(&cluster, &template), "hash=1,!old");
        assert_eq!(changes(cluster.objects()), before + 5);
    }
}
