//! Pods of the API as the descheduler knows them.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Container as ApiContainer, ContainerStatus, Pod as ApiPod, PodSpec, PodStatus},
    apimachinery::pkg::apis::meta::v1::{OwnerReference as ApiOwner, Time},
};
use koord_core::{intern::Interner, key::ObjectKey, uid::Uid};
use koord_resource::{Quantity, quantity::ParseQuantityError};
use koord_scheduler_framework::{labels::Labels, pod::Owner, pod::Template as Placement};

use super::{
    Condition, Container, ContainerKind, ContainerState, DELETION_COST, EVICT, EVICTION_COST, MIRROR, OwnerReference,
    PREFER_NO_EVICTION, Phase, Pod, SOURCE, State, Template,
};

/// The annotations of pods that the descheduler reads.
const ANNOTATIONS: [&str; 6] = [DELETION_COST, EVICT, EVICTION_COST, MIRROR, PREFER_NO_EVICTION, SOURCE];

/// An amount of a pod that is no quantity, which no API server stores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.containers.resources: {0}")]
pub struct DecodeError(#[from] ParseQuantityError);

impl Pod {
    /// The pod of an object of the API. What it has in common with other pods is shared with them through `strings`.
    pub fn of(object: &ApiPod, strings: &mut Interner) -> Result<Self, DecodeError> {
        let metadata = &object.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let labels = metadata.labels.iter().flatten();
        let labels: Labels = labels.map(|(key, value)| (strings.intern(key), strings.intern(value))).collect();
        let annotations = metadata.annotations.iter().flatten();
        let annotations: BTreeMap<&str, &str> = annotations.map(|(key, value)| (&**key, &**value)).collect();
        let spec = object.spec.as_ref();
        let template = match spec {
            Some(spec) => template(namespace, labels, &annotations, spec)?,
            None => Template::default(),
        };
        let status = object.status.clone().unwrap_or_default();
        let state = State::of(&status, strings);
        Ok(Self {
            key: ObjectKey::new(namespace, metadata.name.as_deref().unwrap_or_default()),
            uid: Uid::from(metadata.uid.as_deref().unwrap_or_default()),
            template: Arc::new(template),
            node: spec
                .and_then(|spec| spec.node_name.as_deref())
                .filter(|node| !node.is_empty())
                .map(|node| strings.intern(node)),
            owners: metadata
                .owner_references
                .iter()
                .flatten()
                .map(|owner| OwnerReference::of(owner, strings))
                .collect(),
            annotations: Self::read_annotations(annotations),
            created: metadata.creation_timestamp.as_ref().map_or(0, seconds),
            started: status.start_time.as_ref().map(seconds),
            is_deleting: metadata.deletion_timestamp.is_some(),
            transitions: Self::transitions(&status),
            state: strings.share(state),
        })
    }

    /// When each condition of a status changed, in seconds since 1970; 0 where it does not say.
    pub fn transitions(status: &PodStatus) -> Box<[i64]> {
        let times = status.conditions.iter().flatten().map(|condition| condition.last_transition_time.as_ref());
        times.map(|time| time.map_or(0, seconds)).collect()
    }

    /// Those of these annotations that the descheduler reads.
    pub fn read_annotations<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Labels {
        annotations.into_iter().filter(|(key, _)| ANNOTATIONS.contains(key)).collect()
    }
}

/// The template of a pod.
///
/// # Errors
///
/// An amount is no quantity.
pub fn template(
    namespace: &str,
    labels: Labels,
    annotations: &BTreeMap<&str, &str>,
    spec: &PodSpec,
) -> Result<Template, DecodeError> {
    let volumes = || spec.volumes.iter().flatten();
    let claims = volumes().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let terms = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = terms.and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_ref());
    Ok(Template {
        placement: Arc::new(Placement::of(namespace, labels, annotations, spec)?),
        containers: spec.containers.iter().map(Container::of).collect::<Result<_, _>>()?,
        has_local_storage: volumes().any(|volume| volume.empty_dir.is_some() || volume.host_path.is_some()),
        claims: claims.map(|claim| claim.claim_name.as_str().into()).collect(),
        has_resource_claims: spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()),
        requires_affinity: required.is_some(),
        has_node_selector: spec.node_selector.as_ref().is_some_and(|selector| !selector.is_empty()),
    })
}

impl Container {
    fn of(container: &ApiContainer) -> Result<Self, DecodeError> {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let amount = |name: &str| -> Result<Quantity, DecodeError> {
            let text = requests.and_then(|requests| requests.get(name));
            Ok(text.map(|text| text.0.parse()).transpose()?.unwrap_or_default())
        };
        Ok(Self {
            image: container.image.as_deref().unwrap_or_default().into(),
            cpu_milli: amount("cpu")?.milli_value(),
            memory_bytes: amount("memory")?.value(),
        })
    }
}

impl OwnerReference {
    /// A reference of the API. Equal owners are shared.
    pub fn of(reference: &ApiOwner, strings: &mut Interner) -> Self {
        let owner = Owner {
            api_version: strings.intern(&reference.api_version),
            kind: strings.intern(&reference.kind),
            name: strings.intern(&reference.name),
            uid: Uid::from(reference.uid.as_str()),
        };
        Self { owner: strings.share(owner), is_controller: reference.controller == Some(true) }
    }
}

impl State {
    /// What a status of the API says.
    pub fn of(status: &PodStatus, strings: &mut Interner) -> Self {
        let conditions = status.conditions.iter().flatten().map(|condition| Condition {
            kind: strings.intern(&condition.type_),
            status: strings.intern(&condition.status),
            reason: strings.intern(condition.reason.as_deref().unwrap_or_default()),
        });
        let conditions = conditions.collect();
        let mut containers = Vec::new();
        for (kind, statuses) in [
            (ContainerKind::Init, &status.init_container_statuses),
            (ContainerKind::Main, &status.container_statuses),
            (ContainerKind::Ephemeral, &status.ephemeral_container_statuses),
        ] {
            containers.extend(statuses.iter().flatten().map(|status| ContainerState::of(kind, status, strings)));
        }
        let mut text =
            |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(|text| strings.intern(text));
        Self {
            phase: Phase::named(status.phase.as_deref().unwrap_or_default()),
            reason: text(&status.reason),
            qos: text(&status.qos_class),
            conditions,
            containers: containers.into(),
        }
    }
}

impl ContainerState {
    fn of(kind: ContainerKind, status: &ContainerStatus, strings: &mut Interner) -> Self {
        let state = status.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let terminated = state.and_then(|state| state.terminated.as_ref());
        Self {
            kind,
            restarts: status.restart_count,
            waiting: waiting.map(|waiting| strings.intern(waiting.reason.as_deref().unwrap_or_default())),
            terminated: terminated
                .map(|ended| (strings.intern(ended.reason.as_deref().unwrap_or_default()), ended.exit_code)),
        }
    }
}

/// Seconds since 1970.
fn seconds(time: &Time) -> i64 {
    time.0.as_second()
}
