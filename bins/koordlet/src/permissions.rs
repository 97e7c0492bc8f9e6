//! What koordlet may do in a cluster. It runs on every node, so each permission is one that a taken node has.

use koord_resource::rbac::RbacRule;

/// Every permission that the program uses.
pub fn rbac_rules() -> Vec<RbacRule> {
    let read = &["get", "list", "watch"];
    vec![
        RbacRule::new("", "nodes", read),
        // The kubelet asks the API server whether the agent may read its pods and its configuration.
        RbacRule::new("", "nodes/proxy", &["get"]),
        RbacRule::new("", "nodes/configz", &["get"]),
        RbacRule::new("", "nodes/pods", &["get"]),
        RbacRule::new("", "persistentvolumeclaims", read),
        RbacRule::new("", "pods/eviction", &["create"]),
        RbacRule::new("slo.koordinator.sh", "nodeslos", read),
        RbacRule::new("slo.koordinator.sh", "nodemetrics", read),
        RbacRule::new("slo.koordinator.sh", "nodemetrics/status", &["update"]),
        RbacRule::new("topology.node.k8s.io", "noderesourcetopologies", &["get", "list", "watch", "create", "patch"]),
        RbacRule::new("scheduling.koordinator.sh", "devices", &["get", "list", "watch", "create", "patch"]),
        RbacRule::new("", "events", &["create", "patch"]),
    ]
}
