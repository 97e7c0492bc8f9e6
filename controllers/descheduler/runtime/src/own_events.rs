//! Events about the descheduler itself: on the pod in which it runs or, where that is not known, on its Lease.

use std::sync::Arc;

use koord_descheduler_framework::Cluster;
use koord_descheduler_migration::controller::COMPONENT;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    events::{Event, EventSink, EventType, Regarded},
    key::ObjectKey,
    uid::Uid,
};

/// Records events about the descheduler itself.
#[derive(Clone)]
pub struct OwnEvents {
    events: Arc<dyn EventSink>,
    /// The pod in which the program runs; `None` outside of a cluster.
    pod: Option<ObjectKey>,
    lease: ObjectKey,
}

impl OwnEvents {
    pub fn new(events: Arc<dyn EventSink>, pod: Option<ObjectKey>, lease: ObjectKey) -> Self {
        Self { events, pod, lease }
    }

    /// The namespace of the Lease: where the descheduler keeps what is its own.
    pub(crate) fn namespace(&self) -> &str {
        self.lease.namespace()
    }

    pub(crate) fn record(
        &self,
        cluster: &Cluster,
        type_: EventType,
        (action, reason): (&'static str, &'static str),
        message: String,
    ) {
        let own = self.pod.as_ref().and_then(|key| cluster.pod(cluster.pod_id(key.as_str())?));
        let about = match own {
            Some(pod) => Regarded { kind: ResourceKind::POD, key: pod.key.clone(), uid: pod.uid.clone() },
            None => Regarded { kind: ResourceKind::LEASE, key: self.lease.clone(), uid: Uid::default() },
        };
        self.events.record(COMPONENT, Event::new(about, type_, action, reason, message));
    }
}
