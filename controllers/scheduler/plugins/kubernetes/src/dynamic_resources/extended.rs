//! Extended resources that are devices of a class.
//!
//! A kube-scheduler with the alpha gate `DRAExtendedResource` makes a claim for a pod that requests such a resource, where nodes do not
//! offer it themselves. Without the gate it refuses the pod, and so does this scheduler always; its diagnosis names the class.

use koord_scheduler_framework::{Reason, ReasonCode, cluster::Cluster, dynamic::DeviceClass, pod::Template};
use koord_scheduling::count;

/// Before the name of a class: the resource by which every class can be requested.
const OF_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// The resources that pods of a template request, that no node offers, and that are devices of a class.
pub(super) fn remarks(template: &Template, cluster: &Cluster) -> Vec<Reason> {
    let requested = template.requests.iter().filter(|(name, amount)| count(name, amount) > 0);
    let remarks = requested.filter(|(name, _)| !is_offered(name, cluster)).filter_map(|(name, _)| {
        let class = class_of(name, cluster)?;
        let words =
            format!("no node offers {name}, and devices of DeviceClass {class} are given to ResourceClaims alone");
        Some(ReasonCode::DeviceClassResource.reason(words).with("resource", name).with("deviceClass", class))
    });
    remarks.collect()
}

fn is_offered(resource: &str, cluster: &Cluster) -> bool {
    let id = cluster.resources().get(resource);
    id.is_some_and(|id| cluster.rows().any(|(row, _)| cluster.allocatable(id, row) > 0))
}

/// The first class whose devices are a resource.
fn class_of<'c>(resource: &str, cluster: &'c Cluster) -> Option<&'c str> {
    let mut classes = cluster.objects().of::<DeviceClass>().map(|(key, class)| (key.name(), class));
    let is_it = |(name, class): &(&str, &DeviceClass)| {
        class.spec.extended_resource_name.as_deref() == Some(resource) || resource.strip_prefix(OF_CLASS) == Some(*name)
    };
    classes.find(is_it).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use koord_scheduler_framework::{AttemptState, Diagnostics as _, Request};
    use serde_json::json;

    use super::*;
    use crate::dynamic_resources::testing::World;

    #[test]
    fn a_resource_that_no_node_offers_and_that_is_a_device_of_a_class_is_remarked() {
        let mut world = World::of(&["a"]);
        world.set::<DeviceClass>("named", &json!({"spec": {"extendedResourceName": "example.com/gpu"}}));
        let remarks = |world: &mut World, requests: &str| -> Vec<String> {
            let pod = koord_scheduler_testing::pod("p", &koord_scheduler_testing::requesting(requests));
            let class = world.cluster.class(&pod.template);
            let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
            world.plugin.remarks(&request, &world.cluster).iter().map(koord_scheduler_testing::code).collect()
        };
        let remark =
            |resource: &str, class: &str| format!("DeviceClassResource resource={resource} deviceClass={class}");
        let by_class = "deviceclass.resource.kubernetes.io/gpu";
        let requested = format!("cpu=1 example.com/gpu=1 example.com/other=1 {by_class}=2");
        assert_eq!(remarks(&mut world, &requested), [remark(by_class, "gpu"), remark("example.com/gpu", "named")]);
        assert_eq!(remarks(&mut world, "example.com/gpu=0"), [""; 0]);
        let offered = json!({"status": {"allocatable": {"example.com/gpu": "1"}}});
        world.cluster.set_node(koord_scheduler_testing::node("b", &offered));
        assert_eq!(remarks(&mut world, "example.com/gpu=1"), [""; 0], "a device plugin offers it");
    }
}
