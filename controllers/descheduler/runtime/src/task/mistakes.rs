//! Settings of nodes that cannot be read.

use std::{collections::BTreeMap, sync::Arc};

use koord_descheduler_framework::{Cluster, Node};
use koord_descheduler_migration::controller::COMPONENT;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    events::{Event, EventSink, EventType, Regarded},
    key::ObjectKey,
    uid::Uid,
};

/// The mistakes that were reported, by node.
#[derive(Default)]
pub(super) struct Mistakes(BTreeMap<Arc<str>, Arc<str>>);

impl Mistakes {
    /// Reports the mistakes that have come since.
    pub(super) fn report(&mut self, cluster: &Cluster, events: &dyn EventSink) {
        let of_node = |node: &Node| Some((Arc::clone(&node.name), Arc::clone(node.mistake.as_ref()?)));
        let mistakes: BTreeMap<_, _> = cluster.nodes().filter_map(|(_, node)| of_node(node)).collect();
        for (node, mistake) in mistakes.iter().filter(|(node, mistake)| self.0.get(*node) != Some(*mistake)) {
            tracing::warn!(node = &**node, "a setting of a node is ignored: {mistake}");
            // As kubelets do; `kubectl describe node` looks for both uids.
            let about = Regarded { kind: ResourceKind::NODE, key: ObjectKey::new("", node), uid: Uid::from(&**node) };
            let message = format!("{mistake}; it is ignored");
            let event = Event::new(about, EventType::Warning, "ReadingSettings", "InvalidNodeSetting", message);
            events.record(COMPONENT, event);
        }
        self.0 = mistakes;
    }
}
