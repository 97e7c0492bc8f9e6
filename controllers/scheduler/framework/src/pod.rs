//! What the engine knows of a pod.

mod claims;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Toleration;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::{ResourceList, controller::ResourceKind};
use koord_scheduling::{NodeAffinity, PreferredNodes};

pub use self::claims::ClaimNameError;
use crate::{
    affinity::{PodAffinity, SpreadConstraint},
    dynamic::{GeneratedClaim, NamedClaim},
    host_ports::HostPorts,
    labels::Labels,
    volume::{Disk, PodClaim, Volume},
};

/// What pods of one workload have in common, and all that their placement depends on. Pods that share a template (the same
/// [`Arc`]) are decided alike, and their decisions share work.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub namespace: Arc<str>,
    /// Which profile schedules it: `spec.schedulerName`.
    pub scheduler: Arc<str>,
    /// `spec.priority`; 0 without one.
    pub priority: i32,
    /// Labels of the pod.
    pub labels: Labels,
    /// Annotations that say how it is to be placed. Those that record what it was given are the pod's own.
    pub annotations: Labels,
    /// What it requests, with overhead.
    pub requests: ResourceList,
    /// What of that is overhead of its runtime class.
    pub overhead: ResourceList,
    /// The limits of what it uses, with overhead.
    pub limits: ResourceList,
    /// Kubernetes' own QoS class.
    pub kubernetes_qos: &'static str,
    /// Whether pods may be evicted for it: its `preemptionPolicy` is not `Never`.
    pub preempts: bool,
    /// What it requests of cpu (in thousandths of cores) and memory (in bytes), where containers without a request count as
    /// much as the scheduler assumes of them.
    pub assumed_usage: [i64; 2],
    /// The nodes that it may run on.
    pub affinity: NodeAffinity,
    /// The nodes that it prefers.
    pub preferred: PreferredNodes,
    /// What it says about other pods.
    pub pod_affinity: PodAffinity,
    /// How evenly it is to be spread.
    pub spread: Box<[SpreadConstraint]>,
    /// The controller whose pods it is spread among by default.
    pub controller: Option<Controller>,
    /// The images of its containers and init containers, with their tags.
    pub images: Box<[Arc<str>]>,
    /// The taints that it tolerates.
    pub tolerations: Vec<Toleration>,
    /// Ports of the node that it uses.
    pub host_ports: HostPorts,
    /// Volumes that matter to where it runs.
    pub volumes: Vec<Volume>,
    /// The ResourceClaims that it names.
    pub resource_claims: Box<[NamedClaim]>,
    /// How long the text is of which it was made, for who keeps templates beyond their pods. It says nothing about the pods.
    pub text_length: usize,
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.differs_by_marks_alone(other)
            && (&self.namespace, &self.labels) == (&other.namespace, &other.labels)
            && (&self.controller, &self.images) == (&other.controller, &other.images)
    }
}

impl Template {
    /// Whether all is the same but what [`SignatureFields`](crate::SignatureFields) are about: namespace, controller, labels and images.
    pub fn differs_by_marks_alone(&self, other: &Self) -> bool {
        let Self {
            namespace: _,
            scheduler,
            priority,
            labels: _,
            annotations,
            requests,
            overhead,
            limits,
            kubernetes_qos,
            preempts,
            assumed_usage,
            affinity,
            preferred,
            pod_affinity,
            spread,
            controller: _,
            images: _,
            tolerations,
            host_ports,
            volumes,
            resource_claims,
            text_length: _,
        } = self;
        (priority, kubernetes_qos, preempts) == (&other.priority, &other.kubernetes_qos, &other.preempts)
            && (requests, assumed_usage, annotations) == (&other.requests, &other.assumed_usage, &other.annotations)
            && (overhead, limits, scheduler) == (&other.overhead, &other.limits, &other.scheduler)
            && (affinity, preferred, tolerations) == (&other.affinity, &other.preferred, &other.tolerations)
            && (pod_affinity, spread) == (&other.pod_affinity, &other.spread)
            && (host_ports, volumes) == (&other.host_ports, &other.volumes)
            && *resource_claims == other.resource_claims
    }

    /// The labels of nodes whose values are domains for this pod.
    pub fn topology_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let spread = self.spread.iter().map(|constraint| &constraint.topology_key);
        spread.chain(self.pod_affinity.terms().map(|term| &term.topology_key))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Distinguishes it from another of the same name.
    pub uid: Uid,
    /// What it shares with others.
    pub template: Arc<Template>,
    /// The names of its scheduling gates.
    pub gates: Vec<Arc<str>>,
    /// The node that it is bound to.
    pub node: Option<Arc<str>>,
    /// Its nominated node, from its status.
    pub nominated: Option<Arc<str>>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When its time to end is over, in seconds since 1970; none while it is not being deleted.
    pub ends: Option<i64>,
    /// Whether it was preempted, from its conditions.
    pub is_preempted: bool,
    /// Annotations that record what it was given.
    pub given: Labels,
    /// The ResourceClaims that were made for it.
    pub generated_claims: Box<[GeneratedClaim]>,
    /// Its owners beside the one that controls it.
    pub further_owners: Box<[FurtherOwner]>,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// When its node began to run it; none before.
    pub started: Option<i64>,
    /// When it was scheduled, in seconds since 1970; none before.
    pub scheduled: Option<i64>,
    /// When its init containers had ended, in seconds since 1970; none before.
    pub initialized: Option<i64>,
    /// The object that controls it.
    pub controller: Option<Arc<Owner>>,
    /// Whether a DaemonSet is among its owners, be it the one that controls it or not.
    pub is_of_daemon_set: bool,
    /// Whether its phase is `Running`.
    pub is_running: bool,
    /// Whether it keeps what it has for its owners, and is ready. Of other pods this is not known.
    pub is_ready: bool,
    /// The Reservation of a reserve pod; none for a real pod.
    pub reservation: Option<Arc<Reference>>,
}

/// An object for which a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub kind: ResourceKind,
    pub key: ObjectKey,
}

/// An owner of a pod that does not control it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherOwner {
    pub owner: Arc<Owner>,
    /// What the reference says in `controller`.
    pub controller: Option<bool>,
}

/// An object that owns a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Such as `apps/v1`.
    pub api_version: Arc<str>,
    /// Such as `ReplicaSet`.
    pub kind: Arc<str>,
    pub name: Arc<str>,
    pub uid: Uid,
}

/// A controller whose selector says which pods belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerKind {
    /// `v1`
    ReplicationController,
    /// `apps/v1`
    ReplicaSet,
    /// `apps/v1`
    StatefulSet,
}

/// The controller of a pod, in the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controller {
    pub kind: ControllerKind,
    pub name: Arc<str>,
}

impl Controller {
    /// The controller that an owner reference names; none where it is of another kind.
    pub fn of(api_version: &str, kind: &str, name: &str) -> Option<Self> {
        let kind = match (api_version, kind) {
            ("v1", "ReplicationController") => ControllerKind::ReplicationController,
            ("apps/v1", "ReplicaSet") => ControllerKind::ReplicaSet,
            ("apps/v1", "StatefulSet") => ControllerKind::StatefulSet,
            _ => return None,
        };
        Some(Self { kind, name: name.into() })
    }
}

impl Pod {
    /// All of its owners, each with what its reference says in `controller`; the one that controls the pod is the first.
    pub fn owners(&self) -> impl Iterator<Item = (&Owner, Option<bool>)> {
        let controller = self.controller.as_deref().map(|owner| (owner, Some(true)));
        let further = self.further_owners.iter().map(|FurtherOwner { owner, controller }| (&**owner, *controller));
        controller.into_iter().chain(further)
    }

    /// Whether it differs from how it was in what decides its placement: a status alone, such as the nominated node,
    /// wakes no pod.
    pub fn differs(&self, was: &Self) -> bool {
        !self.has_template_of(was)
            || self.further_owners != was.further_owners
            || (&self.gates, &self.given, &self.controller, self.deleting)
                != (&was.gates, &was.given, &was.controller, was.deleting)
            || (&self.generated_claims, self.is_of_daemon_set) != (&was.generated_claims, was.is_of_daemon_set)
    }
}

impl PartialEq for Pod {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            key,
            uid,
            template: _,
            gates,
            node,
            nominated,
            deleting,
            ends,
            is_preempted,
            given,
            generated_claims,
            further_owners,
            created,
            started,
            scheduled,
            initialized,
            controller,
            is_of_daemon_set,
            is_running,
            is_ready,
            reservation,
        } = self;
        (key, uid, gates, node, nominated) == (&other.key, &other.uid, &other.gates, &other.node, &other.nominated)
            && (deleting, ends, is_preempted) == (&other.deleting, &other.ends, &other.is_preempted)
            && (given, generated_claims, controller) == (&other.given, &other.generated_claims, &other.controller)
            && *further_owners == other.further_owners
            && (created, started, scheduled) == (&other.created, &other.started, &other.scheduled)
            && (initialized, is_running, is_ready) == (&other.initialized, &other.is_running, &other.is_ready)
            && (is_of_daemon_set, reservation) == (&other.is_of_daemon_set, &other.reservation)
            && self.has_template_of(other)
    }
}

impl Pod {
    /// Whether pods share a template. Templates of one cache are the same where they are equal; those of two are compared.
    fn has_template_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.template, &other.template) || self.template == other.template
    }

    /// Whether it requests less of a resource than it did.
    pub fn requests_less(&self, was: &Self) -> bool {
        was.template.requests.iter().any(|(name, amount)| self.template.requests.amount(name) < amount)
    }

    /// Whether it is a reserve pod.
    pub fn is_reservation(&self) -> bool {
        self.reservation.is_some()
    }

    /// The claims of its volumes, in their order, each once.
    pub fn claims(&self) -> Vec<PodClaim> {
        let mut claims = Vec::<PodClaim>::new();
        for volume in &self.template.volumes {
            let (name, is_ephemeral) = match volume {
                Volume::Claim(name) => (name.to_string(), false),
                Volume::Ephemeral(volume) => (format!("{}-{volume}", self.key.name()), true),
                Volume::Disk(_) => continue,
            };
            let claim = PodClaim { key: ObjectKey::new(self.key.namespace(), &name), is_ephemeral };
            if !claims.contains(&claim) {
                claims.push(claim);
            }
        }
        claims
    }

    /// Whether a volume of it has a claim.
    pub fn has_claims(&self) -> bool {
        self.template.volumes.iter().any(|volume| !matches!(volume, Volume::Disk(_)))
    }

    /// The disks that it names itself.
    pub fn disks(&self) -> impl Iterator<Item = &Disk> {
        self.template.volumes.iter().filter_map(|volume| match volume {
            Volume::Disk(disk) => Some(disk),
            Volume::Claim(_) | Volume::Ephemeral(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_of_a_pod_are_named_once_and_after_it_where_they_are_its_own() {
        let claim = Volume::Claim("c".into());
        let volumes = vec![claim.clone(), Volume::Ephemeral("scratch".into()), claim];
        let template = Arc::new(Template { volumes, ..Template::default() });
        let pod = Pod { key: ObjectKey::new("ns", "web-0"), template, ..Pod::default() };
        let claims: Vec<String> = pod.claims().iter().map(|claim| claim.key.to_string()).collect();
        assert_eq!(claims, ["ns/c", "ns/web-0-scratch"]);
    }
}
