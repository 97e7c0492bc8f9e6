//! The devices that drivers offer: pools, each described by slices.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use koord_core::key::ObjectKey;
use koord_scheduler_framework::{
    dynamic::{ResourceSlice, SliceSpec},
    node::Node,
    object::{ObjectChange, Objects},
};
use koord_scheduling::NodeTerm;

/// A pool of devices, by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId {
    pub(super) driver: Arc<str>,
    pub(super) pool: Arc<str>,
}

/// A slice as it was last seen: another version of it is another part.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Part {
    pub(super) key: ObjectKey,
    reach: Reach,
    generation: i64,
}

/// The nodes from which the devices of a slice can be reached.
#[derive(Debug, Default, PartialEq)]
enum Reach {
    /// None that is known.
    #[default]
    Nowhere,
    Node(Arc<str>),
    Everywhere,
    Nodes(Vec<NodeTerm>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pool {
    slices: BTreeMap<ObjectKey, Arc<Part>>,
    /// The slices that describe it as it is now.
    current: Vec<Arc<Part>>,
    /// Why its devices cannot be given.
    pub(super) problem: Option<Problem>,
}

/// Why the devices of a pool cannot be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A part of its description is missing, or is still there.
    Incomplete,
    /// Two devices have this name.
    Duplicate(Arc<str>),
    /// Each device says from which nodes it can be reached.
    PerDevice,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pools {
    by_id: BTreeMap<PoolId, Pool>,
    by_slice: BTreeMap<ObjectKey, PoolId>,
    /// The pools with a current slice that can be reached from this node alone.
    by_node: BTreeMap<Arc<str>, BTreeSet<PoolId>>,
    /// The pools with another one.
    shared: BTreeSet<PoolId>,
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.driver, self.pool)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete => write!(f, "is currently being updated"),
            Self::Duplicate(name) => write!(f, "is currently invalid: duplicate device name {name}"),
            Self::PerDevice => write!(f, "selects nodes per device, which is not supported"),
        }
    }
}

impl PoolId {
    fn of(spec: &SliceSpec) -> Self {
        Self { driver: Arc::clone(&spec.driver), pool: Arc::clone(&spec.pool.name) }
    }
}

impl Part {
    fn of(key: &ObjectKey, spec: &SliceSpec) -> Self {
        Self { key: key.clone(), reach: Reach::of(spec), generation: spec.pool.generation }
    }
}

impl Reach {
    fn of(spec: &SliceSpec) -> Self {
        match spec {
            SliceSpec { node_name: Some(name), .. } if !name.is_empty() => Self::Node(Arc::clone(name)),
            SliceSpec { all_nodes: Some(true), .. } => Self::Everywhere,
            SliceSpec { node_selector: Some(selector), .. } => {
                Self::Nodes(selector.node_selector_terms.iter().filter_map(NodeTerm::new).collect())
            }
            _ => Self::Nowhere,
        }
    }

    fn includes(&self, node: &Node) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Node(name) => *name == node.name,
            Self::Everywhere => true,
            Self::Nodes(terms) => terms.iter().any(|term| term.selects(&node.name, |key| node.labels.get(key))),
        }
    }
}

impl Pool {
    /// The slices whose devices can be reached from a node.
    pub(super) fn reached_from(&self, node: &Node) -> impl Iterator<Item = &Arc<Part>> {
        self.current.iter().filter(|part| part.reach.includes(node))
    }

    /// Looks again at which slices count.
    fn settle(&mut self, objects: &Objects) {
        let newest = self.slices.values().map(|part| part.generation).max();
        self.current = self.slices.values().filter(|part| Some(part.generation) == newest).cloned().collect();
        self.problem = self.find_problem(objects);
    }

    fn find_problem(&self, objects: &Objects) -> Option<Problem> {
        let slices = self.current.iter().filter_map(|part| objects.get::<ResourceSlice>(part.key.as_str()));
        let count = i64::try_from(self.current.len()).unwrap_or(i64::MAX);
        if slices.clone().any(|slice| slice.spec.pool.resource_slice_count != count) {
            return Some(Problem::Incomplete);
        }
        if slices.clone().any(|slice| slice.spec.per_device_node_selection == Some(true)) {
            return Some(Problem::PerDevice);
        }
        let mut names = BTreeSet::new();
        let mut devices = slices.flat_map(|slice| &slice.spec.devices);
        let twice = devices.find(|device| !names.insert(&device.name))?;
        Some(Problem::Duplicate(Arc::clone(&twice.name)))
    }
}

impl Pools {
    /// The pools with devices that can be reached from a node, in their order.
    pub(super) fn reached_from<'p>(&'p self, node: &'p Node) -> impl Iterator<Item = (&'p PoolId, &'p Pool)> {
        let node_pools = self.by_node.get(&node.name).into_iter().flatten();
        let mut ids: Vec<&PoolId> = node_pools.chain(&self.shared).collect();
        ids.sort_unstable();
        ids.dedup();
        let pools = ids.into_iter().filter_map(|id| Some((id, self.by_id.get(id)?)));
        pools.filter(|(_, pool)| pool.reached_from(node).next().is_some())
    }

    /// The pools that these objects describe.
    pub(super) fn of(objects: &Objects) -> Self {
        let mut pools = Self::default();
        for (key, ResourceSlice { spec }) in objects.of::<ResourceSlice>() {
            let (id, part) = (PoolId::of(spec), Part::of(key, spec));
            pools.by_slice.insert(key.clone(), id.clone());
            pools.by_id.entry(id).or_default().slices.insert(key.clone(), Arc::new(part));
        }
        for (id, mut pool) in std::mem::take(&mut pools.by_id) {
            pool.settle(objects);
            pools.list(&id, &pool);
            pools.by_id.insert(id, pool);
        }
        pools
    }

    /// How many there are, in words.
    pub(super) fn words(&self) -> String {
        format!("{} pools with {} slices", self.by_id.len(), self.by_slice.len())
    }

    /// A slice was added, changed or deleted.
    pub(super) fn changed(&mut self, change: &ObjectChange, slice: Option<&ResourceSlice>, objects: &Objects) {
        let Some(key) = change.key() else { return };
        if let Some(id) = self.by_slice.remove(key) {
            self.change(&id, objects, |pool| _ = pool.slices.remove(key));
        }
        if let Some(ResourceSlice { spec }) = slice {
            let (id, part) = (PoolId::of(spec), Part::of(key, spec));
            self.by_slice.insert(key.clone(), id.clone());
            self.change(&id, objects, |pool| _ = pool.slices.insert(key.clone(), Arc::new(part)));
        }
    }

    fn change(&mut self, id: &PoolId, objects: &Objects, change: impl FnOnce(&mut Pool)) {
        let mut pool = self.by_id.remove(id).unwrap_or_default();
        self.unlist(id, &pool);
        change(&mut pool);
        pool.settle(objects);
        if !pool.slices.is_empty() {
            self.list(id, &pool);
            self.by_id.insert(id.clone(), pool);
        }
    }

    fn list(&mut self, id: &PoolId, pool: &Pool) {
        for part in &pool.current {
            let listed = match &part.reach {
                Reach::Node(name) => self.by_node.entry(Arc::clone(name)).or_default(),
                Reach::Nowhere | Reach::Everywhere | Reach::Nodes(_) => &mut self.shared,
            };
            listed.insert(id.clone());
        }
    }

    fn unlist(&mut self, id: &PoolId, pool: &Pool) {
        self.shared.remove(id);
        for part in &pool.current {
            if let Reach::Node(name) = &part.reach
                && let Some(listed) = self.by_node.get_mut(name)
            {
                listed.remove(id);
                if listed.is_empty() {
                    self.by_node.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_core::uid::Uid;
    use koord_scheduler_framework::{cluster::Cluster, object::Object};
    use serde_json::{Value, json};

    use super::*;

    #[derive(Default)]
    struct World {
        cluster: Cluster,
        pools: Pools,
    }

    impl World {
        fn set(&mut self, name: &str, spec: &Value) {
            let slice: ResourceSlice = serde_json::from_value(json!({ "spec": spec })).unwrap();
            let object = Object::new(ObjectKey::cluster(name), Uid::from(name), false, Arc::new(slice.clone()));
            let change = self.cluster.set_object(object);
            self.pools.changed(&change, Some(&slice), self.cluster.objects());
        }

        fn remove(&mut self, name: &str) {
            let change = self.cluster.remove_object(std::any::TypeId::of::<ResourceSlice>(), name).unwrap();
            self.pools.changed(&change, None, self.cluster.objects());
        }

        fn seen_from(&self, node: &str, labels: &Value) -> Vec<String> {
            let node = koord_scheduler_testing::node(node, &json!({"metadata": {"labels": labels}}));
            let pools = self.pools.reached_from(&node).map(|(id, pool)| {
                let parts: Vec<&str> = pool.reached_from(&node).map(|part| part.key.as_str()).collect();
                let problem = pool.problem.as_ref().map(|problem| format!(" {problem}")).unwrap_or_default();
                format!("{id} {}{problem}", parts.join("+"))
            });
            pools.collect()
        }
    }

    fn slice(pool: &str, generation: i64, count: i64, devices: &[&str], reach: &Value) -> Value {
        let devices: Vec<Value> = devices.iter().map(|name| json!({ "name": name })).collect();
        let pool = json!({"name": pool, "generation": generation, "resourceSliceCount": count});
        let mut spec = json!({"driver": "gpu", "pool": pool, "devices": devices});
        spec.as_object_mut().unwrap().extend(reach.as_object().unwrap().clone());
        spec
    }

    #[test]
    fn a_node_sees_its_own_devices_and_those_that_it_can_reach() {
        let mut world = World::default();
        world.set("own", &slice("n1", 1, 1, &["a"], &json!({"nodeName": "n1"})));
        world.set("all", &slice("all", 1, 1, &["a"], &json!({"allNodes": true})));
        let rack =
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r"]}]}]});
        world.set("rack", &slice("rack", 1, 1, &["a"], &json!({ "nodeSelector": rack })));
        world.set("odd", &slice("odd", 1, 1, &["a"], &json!({})));
        assert_eq!(world.seen_from("n1", &json!({})), ["gpu/all all", "gpu/n1 own"]);
        assert_eq!(world.seen_from("n2", &json!({"rack": "r"})), ["gpu/all all", "gpu/rack rack"]);
        world.remove("all");
        world.remove("own");
        assert_eq!(world.seen_from("n1", &json!({})), [""; 0]);
        assert!(world.pools.by_node.is_empty() && world.pools.by_id.len() == 2);
    }

    #[test]
    fn only_the_newest_description_counts_and_only_when_it_is_whole() {
        let mut world = World::default();
        let own = json!({"nodeName": "n1"});
        world.set("one", &slice("p", 1, 1, &["a"], &own));
        world.set("two", &slice("p", 2, 2, &["a"], &own));
        let seen = |world: &World| world.seen_from("n1", &json!({}));
        assert_eq!(seen(&world), ["gpu/p two is currently being updated"]);
        world.set("three", &slice("p", 2, 2, &["b"], &json!({"nodeName": "n2"})));
        assert_eq!(seen(&world), ["gpu/p two"], "a slice of another node counts");
        world.set("three", &slice("p", 2, 2, &["a"], &own));
        assert_eq!(seen(&world), ["gpu/p three+two is currently invalid: duplicate device name a"]);
        world.set("three", &slice("p", 2, 2, &["b"], &json!({"perDeviceNodeSelection": true})));
        assert_eq!(seen(&world), ["gpu/p two selects nodes per device, which is not supported"]);
        world.set("three", &slice("q", 2, 1, &["b"], &own));
        assert_eq!(seen(&world), ["gpu/p two is currently being updated", "gpu/q three"]);
        world.remove("two");
        assert_eq!(seen(&world), ["gpu/p one", "gpu/q three"]);
    }
}
