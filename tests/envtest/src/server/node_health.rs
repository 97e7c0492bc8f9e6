//! Nodes whose kubelet is gone: what is known of them becomes unknown, and their pods are not ready.
//!
//! In a real cluster the node lifecycle controller of kube-controller-manager does so. Here whoever drives the core says
//! how far back a kubelet must have renewed its lease ([`ApiServer::mark_lost_nodes`]).

use http::Method;
use serde_json::{Value, json};

use super::ApiServer;
use crate::{encode, environment, metadata, registry::ResourceDef, store::Record};

/// Where kubelets keep their leases.
pub(super) const LEASE_NAMESPACE: &str = "kube-node-lease";
/// What a kubelet reports. The network is reported by others.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

impl ApiServer {
    /// Marks the nodes whose kubelets have renewed no lease after the revision `since`: their conditions become `Unknown`,
    /// and the pods on them are not ready. A node without a lease counts as heard from at its last change. Nodes that name no
    /// kubelet are left alone. Gives the number of nodes that were marked.
    pub fn mark_lost_nodes(&mut self, since: u64) -> usize {
        let find = |group: &str, plural: &str| self.registry.any_version(group, plural).cloned();
        let (Some(nodes), Some(leases)) = (find("", "nodes"), find("coordination.k8s.io", "leases")) else { return 0 };
        let renewals = self.store.collection(leases.collection);
        let is_lost = |name: &str, node: &Record| {
            let lease = renewals.get(&leases.key(LEASE_NAMESPACE, name));
            lease.map_or(node.revision, |lease| lease.revision) <= since
        };
        let candidates: Vec<Value> = self
            .store
            .collection(nodes.collection)
            .range("", "")
            .filter(|(name, node)| is_lost(name, node) && may_have_kubelet(node))
            .map(|(_, node)| encode::value(&nodes, node))
            .filter(|node| kubelet_port(node).is_some())
            .collect();
        let now = environment::time_text(self.environment.now());
        let mut marked = 0;
        for mut node in candidates {
            let was_ready = is_ready(&node);
            if !make_unknown(&mut node, &now) {
                continue;
            }
            marked += 1;
            let name = metadata::text(&node, "name").to_owned();
            self.write_own(Method::PUT, &format!("/api/v1/nodes/{name}/status"), &node);
            if was_ready {
                self.mark_pods_not_ready(&name, &now);
            }
        }
        if marked > 0 {
            self.follow_changes();
        }
        marked
    }

    fn mark_pods_not_ready(&mut self, node: &str, now: &str) {
        let Some(pods) = self.registry.any_version("", "pods").cloned() else { return };
        for mut pod in self.pods_on(&pods, node) {
            let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten();
            let Some(ready) = conditions.into_iter().find(|it| it["type"] == "Ready" && it["status"] != "False") else {
                continue;
            };
            ready["status"] = json!("False");
            ready["lastTransitionTime"] = json!(now);
            let (namespace, name) = (metadata::text(&pod, "namespace"), metadata::text(&pod, "name"));
            self.write_own(Method::PUT, &format!("/api/v1/namespaces/{namespace}/pods/{name}/status"), &pod);
        }
    }

    /// The pods that are bound to a node.
    pub(crate) fn pods_on(&self, pods: &ResourceDef, node: &str) -> Vec<Value> {
        let Some(place) = pods.selectable_fields.iter().position(|field| field.name == "spec.nodeName") else {
            return Vec::new();
        };
        let all = self.store.collection(pods.collection).range("", "");
        let bound = all.filter(|(_, pod)| pod.fields.get(place).is_some_and(|name| name.as_ref() == node));
        bound.map(|(_, pod)| encode::value(pods, pod)).collect()
    }
}

/// The port of the kubelet that a node's status names; none where no kubelet stands behind the node.
pub(crate) fn kubelet_port(node: &Value) -> Option<u16> {
    let port = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port")?.as_u64()?;
    u16::try_from(port).ok().filter(|port| *port > 0)
}

/// Whether the text of a node names a kubelet at all: most need not be read for that.
fn may_have_kubelet(node: &Record) -> bool {
    const NAME: &[u8] = b"\"kubeletEndpoint\"";
    node.text.tail().windows(NAME.len()).any(|part| part == NAME)
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Makes what the kubelet has reported unknown; false where it is already.
fn make_unknown(node: &mut Value, now: &str) -> bool {
    let created = metadata::text(node, "creationTimestamp").to_owned();
    let before = node["status"]["conditions"].clone();
    let mut conditions = before.as_array().cloned().unwrap_or_default();
    for kind in REPORTED {
        match conditions.iter_mut().find(|condition| condition["type"] == kind) {
            Some(condition) if condition["status"] == "Unknown" => {}
            Some(condition) => {
                condition["status"] = json!("Unknown");
                condition["reason"] = json!("NodeStatusUnknown");
                condition["message"] = json!("Kubelet stopped posting node status.");
                condition["lastTransitionTime"] = json!(now);
            }
            None => conditions.push(json!({
                "type": kind, "status": "Unknown", "lastHeartbeatTime": created, "lastTransitionTime": now,
                "reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status.",
            })),
        }
    }
    let conditions = Value::Array(conditions);
    let is_changed = conditions != before;
    node["status"]["conditions"] = conditions;
    is_changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{environment::SeededEnvironment, kinds, request::ApiRequest, server::Outcome, store::HistoryLimits};

    const NODE: &str = "/api/v1/nodes/n";
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

    fn send(core: &mut ApiServer, method: Method, path: &str, body: &Value) -> Value {
        match core.handle(&ApiRequest::json(method, path, body)) {
            Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// A server whose node `n` is ready; `port` is that of its kubelet.
    fn core(port: Option<u16>) -> ApiServer {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        core.maintain_taints();
        send(&mut core, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n"}}));
        let mut status = json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady"},
            {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"},
        ]});
        if let Some(port) = port {
            status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": port}});
        }
        send(&mut core, Method::PATCH, &format!("{NODE}/status"), &json!({"status": status}));
        core
    }

    fn conditions(core: &mut ApiServer) -> Vec<String> {
        let node = send(core, Method::GET, NODE, &Value::Null);
        let conditions = node["status"]["conditions"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        conditions.iter().map(|it| [&it["type"], &it["status"], &it["reason"]].map(text).join(" ")).collect()
    }

    fn taints(core: &mut ApiServer) -> Vec<String> {
        let node = send(core, Method::GET, NODE, &Value::Null);
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().trim_start_matches("node.kubernetes.io/").to_owned();
        taints.iter().map(|it| [&it["key"], &it["effect"]].map(text).join(":")).collect()
    }

    #[test]
    fn a_node_whose_kubelet_renews_no_lease_is_unknown_and_tainted_until_it_reports_again() {
        let mut core = core(Some(10250));
        let lease = json!({"metadata": {"name": "n"}, "spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}});
        send(&mut core, Method::POST, LEASES, &lease);
        let pods = "/api/v1/namespaces/default/pods";
        let pod =
            json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
        send(&mut core, Method::POST, pods, &pod);
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        send(&mut core, Method::PATCH, &format!("{pods}/p/status"), &ready);
        assert!(taints(&mut core).is_empty(), "it is ready");

        let before = core.store.revision();
        send(
            &mut core,
            Method::PATCH,
            &format!("{LEASES}/n"),
            &json!({"spec": {"renewTime": "2026-01-02T03:05:05.000000Z"}}),
        );
        assert_eq!(core.mark_lost_nodes(before), 0, "it has renewed its lease since");
        let now = core.store.revision();
        assert_eq!(core.mark_lost_nodes(now), 1);
        let expected = [
            "Ready Unknown NodeStatusUnknown",
            "NetworkUnavailable False RouteCreated",
            "MemoryPressure Unknown NodeStatusNeverUpdated",
            "DiskPressure Unknown NodeStatusNeverUpdated",
            "PIDPressure Unknown NodeStatusNeverUpdated",
        ];
        assert_eq!(conditions(&mut core), expected);
        assert_eq!(taints(&mut core), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
        let pod = send(&mut core, Method::GET, &format!("{pods}/p"), &Value::Null);
        assert_eq!(pod["status"]["conditions"][0]["status"], "False");
        let marked = core.store.revision();
        assert_eq!((core.mark_lost_nodes(marked), core.store.revision()), (0, marked), "once is enough");

        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        send(&mut core, Method::PATCH, &format!("{NODE}/status"), &ready);
        assert!(taints(&mut core).is_empty());
    }

    #[test]
    fn a_node_that_names_no_kubelet_is_never_lost() {
        let mut core = core(None);
        let now = core.store.revision();
        assert_eq!(core.mark_lost_nodes(now), 0);
        assert_eq!(conditions(&mut core)[0], "Ready True KubeletReady");
    }
}
