//! What runs on a hollow node by default: production pods, whose load follows the node's [`UsageModel`](crate::UsageModel).
//!
//! They ask for three fifths of the CPU and half of the memory and use of it what the model says. What they leave over is what batch pods get.

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, ResourceRequirements},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

use crate::node::HollowNode;

/// The namespace of the production pods.
pub const NAMESPACE: &str = "shop";

/// How much of a node's CPU its production pods ask for.
const CPU_PERCENT: u64 = 60;

/// How much of a node's memory its production pods ask for.
const MEMORY_PERCENT: u64 = 50;

const MIB: u64 = 1 << 20;

/// Production pods of a node, which share its requests equally.
pub fn production_pods(node: &HollowNode, count: u32) -> impl Iterator<Item = Pod> {
    let share = |amount: u64, percent: u64| amount / 100 * percent / u64::from(count.max(1));
    let requests = [
        ("cpu", format!("{}m", share(node.cpu_milli, CPU_PERCENT))),
        ("memory", format!("{}Mi", share(node.memory_bytes, MEMORY_PERCENT) / MIB)),
    ]
    .map(|(name, amount)| (name.to_owned(), Quantity(amount)));
    (0..count).map(move |index| Pod {
        metadata: ObjectMeta {
            name: Some(format!("{}-{index}", node.name)),
            namespace: Some(NAMESPACE.to_owned()),
            labels: Some([("app", "shop"), ("koordinator.sh/qosClass", "LS")].map(owned).into()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            node_name: Some(node.name.clone()),
            priority_class_name: Some("koord-prod".to_owned()),
            containers: vec![Container {
                name: "shop".to_owned(),
                image: Some("shop".to_owned()),
                resources: Some(ResourceRequirements {
                    requests: Some(requests.clone().into()),
                    limits: Some(requests.clone().into()),
                    claims: None,
                }),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
        status: None,
    })
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn the_pods_of_a_node_share_its_requests_and_have_names_of_their_own() {
        let mut node = HollowNode::of_fleet(Seed::new(1), 0);
        (node.cpu_milli, node.memory_bytes) = (16_000, 64 << 30);
        let requests = |pod: &Pod| {
            let requests = pod.spec.as_ref()?.containers[0].resources.as_ref()?.requests.clone()?;
            Some((requests["cpu"].0.clone(), requests["memory"].0.clone()))
        };
        let one: Vec<Pod> = production_pods(&node, 1).collect();
        assert_eq!(requests(&one[0]), Some(("9600m".into(), "32767Mi".into())));
        let two: Vec<Pod> = production_pods(&node, 2).collect();
        assert_eq!(requests(&two[1]), Some(("4800m".into(), "16383Mi".into())));
        assert_ne!(two[0].metadata.name, two[1].metadata.name);
        assert_eq!(production_pods(&node, 0).count(), 0);
    }
}
