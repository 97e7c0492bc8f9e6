//! The fields of a pod that handlers read, borrowed from the request's text.

use std::{borrow::Cow, sync::LazyLock};

use jiff::{SignedDuration, Timestamp};
use koord_profile::{Excerpt, POD, Texts};
use koord_resource::{
    Time,
    admission::{Denial, items_or_default, or_default, text},
};
use koord_scheduling::{Bounds, kubernetes_qos};
use koord_types::{
    classes::Classes,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    qos::{QOS_LABEL, QosClass},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    decode,
    resources::{Amounts, Resources},
};

/// A pod. Absent and `null` are the same everywhere, as in Go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Pod<'a> {
    #[serde(borrow, deserialize_with = "text")]
    api_version: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<PodMetadata<'a>>,
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

/// Of `metadata`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodMetadata<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) labels: Texts<'a>,
    #[serde(borrow)]
    pub(crate) annotations: Texts<'a>,
    #[serde(rename = "deletionTimestamp")]
    deleted: Option<Time>,
    #[serde(rename = "deletionGracePeriodSeconds")]
    grace_seconds: Option<i64>,
}

/// Of `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec<'a> {
    #[serde(borrow, deserialize_with = "items_or_default")]
    pub(crate) init_containers: Vec<Container<'a>>,
    #[serde(borrow, deserialize_with = "items_or_default")]
    pub(crate) containers: Vec<Container<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) overhead: Amounts<'a>,
    /// Of the pod as a whole.
    #[serde(borrow)]
    pub(crate) resources: Option<Resources<'a>>,
    pub(crate) priority: Option<i32>,
    #[serde(borrow)]
    pub(crate) affinity: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) scheduler_name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) priority_class_name: Cow<'a, str>,
    /// Empty for none.
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) preemption_policy: Cow<'a, str>,
    #[serde(skip)]
    pub(crate) changed: Changed,
}

/// Which single fields of `spec` were changed; maps know it themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changed {
    pub(crate) scheduler_name: bool,
    /// `priorityClassName`, `priority` and `preemptionPolicy`.
    pub(crate) priority: bool,
    pub(crate) affinity: Option<serde_json::Value>,
}

/// A container or init container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Container<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) restart_policy: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) resources: Resources<'a>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow, deserialize_with = "text")]
    qos_class: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    phase: Cow<'a, str>,
}

/// A pod whose parts are there, empty ones included.
pub(crate) struct Parts<'a> {
    pub(crate) metadata: PodMetadata<'a>,
    pub(crate) spec: Spec<'a>,
    /// Whether the object has `metadata` and `spec`.
    pub(crate) has: (bool, bool),
    status: Status<'a>,
}

impl<'a> Pod<'a> {
    /// The part of a pod that a view shows and a handler looks at. The affinity is only bound to quota trees.
    pub(crate) fn excerpt(with_affinity: bool) -> &'static Excerpt {
        static WITH_AFFINITY: LazyLock<Excerpt> = LazyLock::new(|| Pod::shown(&["affinity"]));
        static WITHOUT: LazyLock<Excerpt> = LazyLock::new(|| Pod::shown(&[]));
        if with_affinity { &WITH_AFFINITY } else { &WITHOUT }
    }

    fn shown(more_of_spec: &[&str]) -> Excerpt {
        let containers = || Excerpt::Items(Box::new(Excerpt::whole_fields(&["name", "restartPolicy", "resources"])));
        let whole = ["overhead", "resources", "priority", "schedulerName", "priorityClassName", "preemptionPolicy"];
        let lists = Excerpt::fields([("initContainers", containers()), ("containers", containers())]);
        Excerpt::fields([
            ("apiVersion", Excerpt::Whole),
            ("kind", Excerpt::Whole),
            ("metadata", Excerpt::whole_fields(&["name", "namespace", "labels", "annotations"])),
            ("spec", Excerpt::whole_fields(&whole).and(lists).and(Excerpt::whole_fields(more_of_spec))),
            ("status", Excerpt::whole_fields(&["qosClass"])),
        ])
    }

    /// Reads a pod that must be there.
    pub(crate) fn read(raw: Option<&'a RawValue>) -> Result<Parts<'a>, Denial> {
        let text = raw.map_or("", RawValue::get);
        decode::object::<Pod<'a>>(raw).map_err(|denial| explained(denial, text))?.parts()
    }

    /// Reads a pod's text.
    pub(crate) fn read_text(text: &'a str) -> Result<Parts<'a>, Denial> {
        decode::text::<Pod<'a>>(text).map_err(|denial| explained(denial, text))?.parts()
    }

    fn parts(self) -> Result<Parts<'a>, Denial> {
        decode::kind(&self.api_version, &self.kind, ("v1", "Pod"), "*v1.Pod")?;
        let has = (self.metadata.is_some(), self.spec.is_some());
        Ok(Parts {
            metadata: self.metadata.unwrap_or_default(),
            spec: self.spec.unwrap_or_default(),
            has,
            status: self.status,
        })
    }
}

/// The refusal of a text that is no pod, in Go's words where they are known.
fn explained(denial: Denial, text: &str) -> Denial {
    let type_error = serde_json::from_str(text).ok().and_then(|object| koord_profile::type_error(&object, POD));
    type_error.map_or(denial, Denial::bad_request)
}

impl Parts<'_> {
    /// The QoS class that the pod declares.
    pub(crate) fn declared_qos(&self) -> Option<QosClass> {
        QosClass::of_label(self.metadata.labels.get(QOS_LABEL))
    }

    /// The priority class that the pod declares.
    pub(crate) fn declared_class(&self) -> Option<PriorityClass> {
        PriorityClass::declared(self.metadata.labels.get(PRIORITY_CLASS_LABEL), self.spec.priority)
    }

    /// The priority class that the pod has: as declared, or by its QoS.
    pub(crate) fn class(&self) -> Option<PriorityClass> {
        Classes::of(|key| self.metadata.labels.get(key), self.spec.priority, || self.kubernetes_qos()).priority
    }

    /// Whether the pod needs nothing any more.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        let gone = self.metadata.deleted.zip(self.metadata.grace_seconds).is_some_and(|(deleted, grace_seconds)| {
            deleted.at().saturating_add(SignedDuration::from_secs(grace_seconds)).is_ok_and(|gone| gone < now)
        });
        gone || matches!(self.status.phase.as_ref(), "Succeeded" | "Failed")
    }

    /// Kubernetes' own QoS class: as the status shows it, or from requests and limits of CPU and memory, which are those of
    /// the pod as a whole where it has any.
    fn kubernetes_qos(&self) -> &str {
        if !self.status.qos_class.is_empty() {
            return &self.status.qos_class;
        }
        if let Some(whole) = &self.spec.resources {
            return kubernetes_qos([bounds(whole)]);
        }
        let containers = self.spec.containers.iter().chain(&self.spec.init_containers);
        kubernetes_qos(containers.map(|container| bounds(&container.resources)))
    }
}

/// Requests and limits of CPU and memory.
fn bounds<'r>(Resources { requests, limits }: &'r Resources<'_>) -> [Bounds<'r>; 2] {
    ["cpu", "memory"].map(|name| Bounds { request: requests.get(name), limit: limits.get(name) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_pod_has_as_a_whole_decides_its_class_alone() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let full = json!({"requests": both, "limits": both});
        for (whole, of_container, class) in [
            (&full, json!({}), "Guaranteed"),
            (&json!({"requests": {"cpu": "1"}}), full.clone(), "Burstable"),
            (&json!({}), full.clone(), "BestEffort"),
            (&Value::Null, full.clone(), "Guaranteed"),
        ] {
            let spec = json!({"resources": whole, "containers": [{"name": "c", "resources": of_container}]});
            let text = json!({ "spec": spec }).to_string();
            assert_eq!(Pod::read_text(&text).unwrap().kubernetes_qos(), class, "{text}");
        }
    }
}
