//! Clusters with devices and claims for the tests of this plugin.

use std::{any::TypeId, sync::Arc};

use koord_core::{
    key::ObjectKey,
    uid::Uid,
    write::{Action, Write},
};
use koord_scheduler_framework::{
    AttemptState, EnqueueExtensions, Patch, PluginState, PreBind, PreFilter, Request, Reserve,
    cluster::Cluster,
    dynamic::{DeviceClass, GeneratedClaim, ResourceClaim, ResourceSlice},
    event::Event,
    hold::Holds,
    object::{Object, ObjectChange},
    pod::Pod,
};
use serde_json::{Value, json};

use super::{ClaimsHeld, Devices, DynamicResources};

pub(super) const DRIVER: &str = "gpu.example.com";

#[derive(Default)]
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) plugin: DynamicResources,
    revision: u64,
    /// How many objects were deleted: one of the same name is another one.
    deleted: u64,
}

/// A request for so many devices of the class `gpu`.
pub(super) fn request(name: &str, count: u32, selectors: &[&str]) -> Value {
    let selectors: Vec<Value> = selectors.iter().map(|text| json!({"cel": {"expression": text}})).collect();
    let exactly =
        json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, "selectors": selectors});
    json!({"name": name, "exactly": exactly})
}

pub(super) fn claimed(requests: &Value) -> Value {
    json!({"spec": {"devices": {"requests": requests}}})
}

impl World {
    /// These nodes, and a class `gpu` of all devices of the driver.
    pub(super) fn of(nodes: &[&str]) -> Self {
        let mut world = Self::default();
        world.cluster.add_state(world.plugin.state());
        for name in nodes {
            world
                .cluster
                .set_node(koord_scheduler_testing::node(name, &json!({"metadata": {"labels": {"host": name}}})));
        }
        let expression = format!("device.driver == '{DRIVER}'");
        world.set::<DeviceClass>("gpu", &json!({"spec": {"selectors": [{"cel": {"expression": expression}}]}}));
        world
    }

    /// An object that is added or changed; claims are in the namespace `ns`.
    pub(super) fn set<T>(&mut self, name: &str, members: &Value) -> ObjectChange
    where
        T: for<'de> serde::Deserialize<'de> + Send + Sync + 'static,
    {
        self.revision += 1;
        let mut members = members.clone();
        members["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let value = Arc::new(serde_json::from_value::<T>(members).unwrap());
        let key = key::<T>(name);
        let known = self.cluster.objects().entry::<T>(key.as_str()).map(|known| known.uid.clone());
        let new = || if self.deleted > 0 { Uid::from(&*format!("{name}-{}", self.deleted)) } else { Uid::from(name) };
        self.cluster.set_object(Object::new(key, known.unwrap_or_else(new), false, value))
    }

    pub(super) fn remove<T: 'static>(&mut self, name: &str) -> ObjectChange {
        self.deleted += 1;
        self.cluster.remove_object(TypeId::of::<T>(), key::<T>(name).as_str()).unwrap()
    }

    /// A node's pool of devices, with these other members of each.
    pub(super) fn devices(&mut self, node: &str, devices: &[(&str, Value)]) -> ObjectChange {
        let devices: Vec<Value> = devices
            .iter()
            .map(|(name, members)| {
                let mut device = members.clone();
                device["name"] = json!(name);
                device
            })
            .collect();
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices});
        self.set::<ResourceSlice>(&format!("slice-{node}"), &json!({ "spec": spec }))
    }

    /// A node's pool of alike devices.
    pub(super) fn plain(&mut self, node: &str, names: &[&str]) -> ObjectChange {
        let devices: Vec<(&str, Value)> = names.iter().map(|name| (*name, json!({}))).collect();
        self.devices(node, &devices)
    }

    pub(super) fn claim(&mut self, name: &str, members: &Value) -> ObjectChange {
        self.set::<ResourceClaim>(name, members)
    }

    /// Of each node whether a pod may run there; one text where it is not asked.
    pub(super) fn answers(&mut self, pod: &Arc<Pod>) -> Vec<String> {
        let class = self.cluster.class(&pod.template);
        match self
            .plugin
            .pre_filter(&Request { pod, class: &class, plugins: &[], state: &AttemptState::default() }, &self.cluster)
        {
            Ok(()) => koord_scheduler_testing::filtered_pod(&self.plugin, &mut self.cluster, pod),
            Err(rejection) => vec![format!("{:?}: {}", rejection.code, rejection.message())],
        }
    }

    /// What is given to the claims of a pod on a node, and what is written before it is bound. The pod is in its place then.
    pub(super) fn reserve(&mut self, pod: &Arc<Pod>, node: &str) -> Result<(Vec<String>, Vec<Write>), String> {
        let (class, row) = (self.cluster.class(&pod.template), self.cluster.row(node).unwrap());
        let request = Request { pod, class: &class, plugins: &[], state: &AttemptState::default() };
        let mut holds = Holds::default();
        self.plugin.reserve(&request, &self.cluster, row, &mut holds).map_err(|rejection| rejection.message())?;
        let given = holds.get::<ClaimsHeld>().cloned().unwrap_or_default();
        let words = given.0.iter().flat_map(|held| &held.given.results);
        let words = words.map(|result| format!("{}={}", result.request, result.device.device)).collect();
        self.cluster.place(Arc::clone(pod), &node.into(), holds);
        let mut patch = Patch::default();
        self.plugin.pre_bind(&request, self.cluster.pod(&pod.uid).unwrap(), &self.cluster, &mut patch);
        Ok((words, patch.writes.into_iter().map(|(_, write)| write).collect()))
    }

    /// What writes make of a claim, as the API server would.
    pub(super) fn carry_out(&mut self, name: &str, claim: &Value, writes: &[Write]) -> Value {
        let mut claim = claim.clone();
        for write in writes.iter().filter(|write| write.key.name() == name) {
            let (Action::Patch { patch, .. } | Action::StrategicPatch { patch, .. }) = &write.action else {
                panic!("{write:?}")
            };
            for part in ["status", "metadata"] {
                let members = patch[part].as_object().cloned().unwrap_or_default();
                for (member, value) in members.into_iter().filter(|(member, _)| member != "resourceVersion") {
                    claim[part][member] = value;
                }
            }
        }
        self.claim(name, &claim);
        claim
    }

    pub(super) fn used(&self) -> Vec<String> {
        let ledger = &self.cluster.state::<Devices>().unwrap().ledger;
        assert_eq!(*ledger.used(), ledger.recount());
        let pools = ledger.used().iter();
        pools.flat_map(|(id, devices)| devices.keys().map(move |device| format!("{}/{device}", id.pool))).collect()
    }

    pub(super) fn helps(&self, pod: &Pod, change: ObjectChange) -> bool {
        self.plugin.is_helped_by(pod, &Event::Object(change), &self.cluster)
    }
}

fn key<T: 'static>(name: &str) -> ObjectKey {
    let is_claim = TypeId::of::<T>() == TypeId::of::<ResourceClaim>();
    if is_claim { ObjectKey::new("ns", name) } else { ObjectKey::cluster(name) }
}

/// A pod with these claims.
pub(super) fn pod(name: &str, claims: &[&str]) -> Arc<Pod> {
    let claims: Vec<Value> = claims.iter().map(|name| json!({"name": name, "resourceClaimName": name})).collect();
    koord_scheduler_testing::pod(name, &json!({ "resourceClaims": claims }))
}

/// A pod with a claim of its own, whose name is known or not.
pub(super) fn pod_with_template(name: &str, generated: Option<&str>) -> Arc<Pod> {
    let claims = json!([{"name": "own", "resourceClaimTemplateName": "t"}]);
    let generated = generated.map(|claim| GeneratedClaim { name: "own".into(), claim: Some(claim.into()) });
    let pod = koord_scheduler_testing::pod(name, &json!({ "resourceClaims": claims }));
    Arc::new(Pod { generated_claims: generated.into_iter().collect(), ..Pod::clone(&pod) })
}
