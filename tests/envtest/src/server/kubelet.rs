//! Requests that a kubelet answers: logs, commands and ports of the pods on its node, and whatever else it serves.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
};

use http::Method;
use serde_json::Value;

use super::{ApiServer, node_health::kubelet_port};
use crate::{
    metadata,
    request::{ApiRequest, Target, parse_path},
    status::ApiError,
};

/// Addresses of a node that the server connects to, in this order. Names are not resolved.
const ADDRESSES: [&str; 2] = ["InternalIP", "ExternalIP"];

/// What a kubelet, or another program on its node, is asked instead of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletCall {
    /// What becomes of the answer.
    pub kind: CallKind,
    /// Name of the pod or node.
    pub name: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// How to connect.
    pub scheme: Scheme,
    /// Path and query.
    pub path: String,
}

/// What becomes of a kubelet's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// It is text; a failure becomes a `Status`.
    Log,
    /// It is a connection in both directions, or passed on as it is.
    Stream,
    /// It is passed on as it is.
    Proxy,
}

/// How somebody on a node is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// TLS, with the certificate by which kubelets know the server.
    Kubelet,
    /// TLS without a certificate.
    Https,
    /// Plain text.
    Http,
}

/// Whether a path may be one that a kubelet answers: most requests need not be looked at further.
pub(crate) fn may_be_for_kubelet(path: &str) -> bool {
    const STREAMS: [&str; 4] = ["/log", "/exec", "/attach", "/portforward"];
    path.starts_with("/api/v1/")
        && (STREAMS.iter().any(|end| path.ends_with(end))
            || (path.starts_with("/api/v1/nodes/") && path.contains("/proxy")))
}

impl ApiServer {
    /// What a kubelet is asked for this request; none where the core answers, as it does for nodes that name no kubelet.
    /// `path` is the path as it was sent, and `query` what follows it.
    pub(crate) fn kubelet_call(
        &self,
        request: &ApiRequest,
        path: &str,
        query: &str,
    ) -> Option<Result<KubeletCall, ApiError>> {
        let target = parse_path(&request.path).filter(|target| target.group.is_empty() && target.version == "v1")?;
        let subresource = target.subresource.split('/').next().unwrap_or_default();
        match (target.resource.as_str(), subresource, &request.method) {
            ("pods", "log", &Method::GET) => self.pod_call(request, &target, CallKind::Log),
            ("pods", "exec" | "attach" | "portforward", &Method::GET | &Method::POST) => {
                self.pod_call(request, &target, CallKind::Stream)
            }
            ("nodes", "proxy", _) => self.node_call(&target, path, query),
            _ => None,
        }
    }

    fn pod_call(&self, request: &ApiRequest, target: &Target, kind: CallKind) -> Option<Result<KubeletCall, ApiError>> {
        let pods = self.registry.any_version("", "pods")?;
        let pod = self.object(pods, &target.namespace, &target.name)?;
        let (address, scheme) = self.kubelet_of(pod["spec"]["nodeName"].as_str()?)?;
        let (namespace, name) = (&target.namespace, &target.name);
        let path = if target.subresource == "portforward" {
            format!("/portForward/{namespace}/{name}")
        } else {
            let container = match container(&pod, request.parameter("container")) {
                Ok(container) => container,
                Err(error) => return Some(Err(error)),
            };
            let verb = if kind == CallKind::Log { "containerLogs" } else { target.subresource.as_str() };
            format!("/{verb}/{namespace}/{name}/{container}")
        };
        let query = query_of(request, &target.subresource);
        let path = if query.is_empty() { path } else { format!("{path}?{query}") };
        Some(Ok(KubeletCall { kind, name: name.clone(), address, scheme, path }))
    }

    /// `nodes/NAME/proxy/PATH`, where the name may have a scheme before it and a port behind it.
    fn node_call(&self, target: &Target, path: &str, query: &str) -> Option<Result<KubeletCall, ApiError>> {
        let parts: Vec<&str> = target.name.split(':').collect();
        let (scheme, name, port) = match parts[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme @ ("" | "http" | "https"), name, port] => (scheme, name, port),
            _ => return Some(Err(ApiError::bad_request(format!("invalid node request {:?}", target.name)))),
        };
        let (kubelet, _) = self.kubelet_of(name)?;
        if !is_proxied(kubelet.ip()) {
            return Some(Err(ApiError::bad_request("address not allowed")));
        }
        let (address, scheme) = match port.parse::<u16>() {
            _ if port.is_empty() => (kubelet, Scheme::Kubelet),
            Ok(port) if port == kubelet.port() => (kubelet, Scheme::Kubelet),
            Ok(port) => {
                let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
                (SocketAddr::new(kubelet.ip(), port), scheme)
            }
            Err(_) => return Some(Err(ApiError::bad_request(format!("invalid node request {:?}", target.name)))),
        };
        let below = path.splitn(7, '/').nth(6).map_or_else(String::new, |rest| format!("/{rest}"));
        let path = if query.is_empty() { below } else { format!("{below}?{query}") };
        Some(Ok(KubeletCall { kind: CallKind::Proxy, name: name.to_owned(), address, scheme, path }))
    }

    /// Where the kubelet of a node is; none where none stands behind it.
    fn kubelet_of(&self, node: &str) -> Option<(SocketAddr, Scheme)> {
        let node = self.object(self.registry.any_version("", "nodes")?, "", node)?;
        let port = kubelet_port(&node)?;
        let addresses = node["status"]["addresses"].as_array()?;
        let of_type = |type_: &str| {
            let found = addresses.iter().find(|address| address["type"] == type_)?;
            found["address"].as_str()?.parse::<IpAddr>().ok()
        };
        Some((SocketAddr::new(ADDRESSES.into_iter().find_map(of_type)?, port), Scheme::Kubelet))
    }
}

/// The container that is meant: the one that is named, or the only one.
pub(super) fn container(pod: &Value, named: Option<&str>) -> Result<String, ApiError> {
    let name = metadata::text(pod, "name");
    let all: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    match named.filter(|container| !container.is_empty()) {
        Some(container) if !all.contains(&container) => {
            Err(ApiError::bad_request(format!("container {container} is not valid for pod {name}")))
        }
        Some(container) => Ok(container.to_owned()),
        None => {
            if let Some([only]) = pod["spec"]["containers"].as_array().map(Vec::as_slice) {
                return Ok(only["name"].as_str().unwrap_or_default().to_owned());
            }
            let choices = all.join(" ");
            let why = format!("a container name must be specified for pod {name}, choose one of: [{choices}]");
            Err(ApiError::bad_request(why))
        }
    }
}

/// What the kubelet's parameters are called, after what the client's are; values that say yes or no become `yes`.
struct Parameter {
    from: &'static str,
    to: &'static str,
    yes: Option<&'static str>,
}

const fn flag(from: &'static str, to: &'static str, yes: &'static str) -> Parameter {
    Parameter { from, to, yes: Some(yes) }
}

const fn value(from: &'static str) -> Parameter {
    Parameter { from, to: from, yes: None }
}

/// In the order in which they are sent: by name.
const OF_LOGS: [Parameter; 7] = [
    flag("follow", "follow", "true"),
    value("limitBytes"),
    flag("previous", "previous", "true"),
    value("sinceSeconds"),
    value("sinceTime"),
    value("tailLines"),
    flag("timestamps", "timestamps", "true"),
];
const OF_STREAMS: [Parameter; 5] = [
    value("command"),
    flag("stderr", "error", "1"),
    flag("stdin", "input", "1"),
    flag("stdout", "output", "1"),
    flag("tty", "tty", "1"),
];

/// The query that the kubelet gets.
fn query_of(request: &ApiRequest, subresource: &str) -> String {
    let parameters = match subresource {
        "log" => &OF_LOGS[..],
        "exec" => &OF_STREAMS[..],
        "attach" => &OF_STREAMS[1..],
        _ => {
            let ports: Vec<&str> = request.parameters("ports").collect();
            return if ports.is_empty() { String::new() } else { format!("port={}", escaped(&ports.join(","))) };
        }
    };
    let mut pairs = Vec::new();
    for parameter in parameters {
        let mut given = request.parameters(parameter.from);
        match parameter.yes {
            // As Go reads it: what is neither absent nor no is yes.
            Some(yes) => pairs.extend(
                given
                    .next()
                    .filter(|value| *value != "0" && !value.eq_ignore_ascii_case("false"))
                    .map(|_| format!("{}={yes}", parameter.to)),
            ),
            None => pairs.extend(given.map(|value| format!("{}={}", parameter.to, escaped(value)))),
        }
    }
    pairs.join("&")
}

/// A text as a part of a query.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            // Writing to a text does not fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Whether requests of users may be passed on to this address: to none by which this machine is reached alone.
fn is_proxied(ip: IpAddr) -> bool {
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(is_local || ip.is_loopback() || ip.is_unspecified() || ip.is_multicast())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{environment::SeededEnvironment, kinds, server::Outcome, store::HistoryLimits};

    /// Pods `one` and `two` with as many containers, on a node with a kubelet, and `hollow` on one without.
    fn core() -> ApiServer {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        let mut send =
            |method: Method, path: &str, body: &Value| match core.handle(&ApiRequest::json(method, path, body)) {
                Outcome::Done(answer) => assert!(answer.code < 300, "{}", String::from_utf8_lossy(&answer.body)),
                other => panic!("{other:?}"),
            };
        for (node, address) in [("real", "10.0.0.7"), ("local", "127.0.0.1"), ("hollow", "10.0.0.8")] {
            send(Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": node}}));
            let mut status = json!({"addresses": [
                {"type": "Hostname", "address": node}, {"type": "InternalIP", "address": address},
            ]});
            if node != "hollow" {
                status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 10250}});
            }
            send(Method::PATCH, &format!("/api/v1/nodes/{node}/status"), &json!({"status": status}));
        }
        for (pod, node, containers) in [("one", "real", 1), ("two", "real", 2), ("hollow", "hollow", 1)] {
            let containers: Vec<Value> =
                (0..containers).map(|it| json!({"name": format!("c{it}"), "image": "i"})).collect();
            let object = json!({"metadata": {"name": pod}, "spec": {"nodeName": node, "containers": containers}});
            send(Method::POST, "/api/v1/namespaces/default/pods", &object);
        }
        core
    }

    fn call(core: &ApiServer, method: Method, path: &str) -> Option<Result<KubeletCall, ApiError>> {
        let (raw, query) = path.split_once('?').unwrap_or((path, ""));
        assert!(may_be_for_kubelet(raw), "{raw}");
        core.kubelet_call(&ApiRequest::new(method, path, ""), raw, query)
    }

    #[test]
    fn kubelets_are_asked_as_the_real_server_asks_them() {
        let core = core();
        let pods = "/api/v1/namespaces/default/pods";
        let table = [
            (format!("{pods}/one/log"), "/containerLogs/default/one/c0"),
            (
                format!(
                    "{pods}/two/log?container=c1&follow=true&previous=false&tailLines=5&sinceTime=2026-01-02T03:04:05Z"
                ),
                "/containerLogs/default/two/c1?follow=true&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=5",
            ),
            (
                format!("{pods}/one/exec?command=sh&command=-c&command=a+%26+b&stdin=true&stdout=1&tty=false"),
                "/exec/default/one/c0?command=sh&command=-c&command=a+%26+b&input=1&output=1",
            ),
            (format!("{pods}/one/attach?stderr=true&command=x"), "/attach/default/one/c0?error=1"),
            (format!("{pods}/one/portforward"), "/portForward/default/one"),
            (format!("{pods}/one/portforward?ports=80&ports=81"), "/portForward/default/one?port=80%2C81"),
            ("/api/v1/nodes/real/proxy/stats/summary?only_cpu=true".to_owned(), "/stats/summary?only_cpu=true"),
            ("/api/v1/nodes/https:real:10250/proxy/a%2Fb/".to_owned(), "/a%2Fb/"),
            ("/api/v1/nodes/real/proxy".to_owned(), ""),
        ];
        for (path, expected) in table {
            let call = call(&core, Method::GET, &path).unwrap().unwrap();
            assert_eq!((call.path.as_str(), call.scheme), (expected, Scheme::Kubelet), "{path}");
            assert_eq!(call.address.to_string(), "10.0.0.7:10250");
        }
        let other = call(&core, Method::GET, "/api/v1/nodes/real:9100/proxy/metrics").unwrap().unwrap();
        assert_eq!((other.address.to_string().as_str(), other.scheme), ("10.0.0.7:9100", Scheme::Http));
    }

    #[test]
    fn what_no_kubelet_can_answer_is_refused_or_left_to_the_core() {
        let core = core();
        let message = |path: &str| match call(&core, Method::GET, path) {
            Some(Err(error)) => error.message().to_owned(),
            other => panic!("{path}: {other:?}"),
        };
        let two = "/api/v1/namespaces/default/pods/two";
        let choose = "a container name must be specified for pod two, choose one of: [c0 c1]";
        assert_eq!(message(&format!("{two}/exec?command=ls")), choose);
        assert_eq!(message(&format!("{two}/log?container=c9")), "container c9 is not valid for pod two");
        assert_eq!(message("/api/v1/nodes/local/proxy/pods"), "address not allowed");
        assert_eq!(message("/api/v1/nodes/a:b:c:d/proxy/pods"), r#"invalid node request "a:b:c:d""#);
        for path in ["namespaces/default/pods/hollow/log", "namespaces/default/pods/none/exec", "nodes/hollow/proxy/x"]
        {
            assert_eq!(call(&core, Method::GET, &format!("/api/v1/{path}")), None, "{path}");
        }
    }
}
