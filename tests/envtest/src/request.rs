//! A request as the core sees it, and how its path is read.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// User name, such as `admin`.
    pub name: String,
    /// Unique id; may be empty.
    pub uid: String,
    /// Groups, such as `system:masters`.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Name of the user in whose name the server itself writes.
pub const SERVER_USER: &str = "system:apiserver";

impl User {
    /// The user in whose name the server itself writes.
    pub fn server() -> Self {
        Self { name: SERVER_USER.to_owned(), groups: vec!["system:masters".to_owned()], ..Self::default() }
    }

    /// What names of kubelets begin with.
    pub const NODE_PREFIX: &'static str = "system:node:";

    /// The name of the node whose kubelet this is; none for everyone else.
    pub fn node(&self) -> Option<&str> {
        let is_node = self.groups.iter().any(|group| group == "system:nodes");
        self.name.strip_prefix(Self::NODE_PREFIX).filter(|_| is_node)
    }

    /// The `UserInfo` of reviews.
    pub fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            info["extra"] = self.extra.iter().map(|(key, values)| (key.clone(), json!(values))).collect();
        }
        info
    }

    /// The user that in-process clients act as.
    pub fn admin() -> Self {
        Self {
            name: "admin".to_owned(),
            uid: "uid".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            extra: Vec::new(),
        }
    }
}

/// One HTTP request with its body read.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    /// HTTP method.
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Decoded query parameters, in order.
    pub query: Vec<(String, String)>,
    /// `Content-Type`; empty when absent.
    pub content_type: String,
    /// `Accept`; empty when absent.
    pub accept: String,
    /// `User-Agent`; empty when absent.
    pub user_agent: String,
    /// Who asks.
    pub user: User,
    /// The body.
    pub body: Bytes,
}

impl ApiRequest {
    /// A request of the in-process administrator; `path` may carry a query.
    pub fn new(method: Method, path: &str, body: impl Into<Bytes>) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Self {
            method,
            path: percent_decode(path),
            query: parse_query(query),
            content_type: "application/json".to_owned(),
            accept: "application/json".to_owned(),
            user_agent: "envtest".to_owned(),
            user: User::admin(),
            body: body.into(),
        }
    }

    /// A request of the in-process administrator with a JSON body, which is empty for null. A PATCH is a merge patch.
    pub fn json(method: Method, path: &str, body: &Value) -> Self {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = Self::new(method, path, text);
        if request.method == Method::PATCH {
            "application/merge-patch+json".clone_into(&mut request.content_type);
        }
        request
    }

    /// The first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a query parameter.
    pub fn parameters<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a query string; `+` is a space, broken escapes stay as they are.
pub fn parse_query(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(&key.replace('+', " ")), percent_decode(&value.replace('+', " ")))
        })
        .collect()
}

fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = escaped {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What a resource path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// API group; empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural; empty for the group version itself.
    pub resource: String,
    /// Namespace; empty for cluster scope or all namespaces.
    pub namespace: String,
    /// Name; empty for a collection.
    pub name: String,
    /// Subresource with whatever follows it; empty for none.
    pub subresource: String,
    /// Whether the path has the old `/watch/` prefix.
    pub watch_prefix: bool,
}

/// Reads `/api/…` and `/apis/…` paths; other paths give `None`.
pub fn parse_path(path: &str) -> Option<Target> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let (group, version) = match parts.next()? {
        "api" => (String::new(), parts.next()?.to_owned()),
        "apis" => (parts.next()?.to_owned(), parts.next()?.to_owned()),
        _ => return None,
    };
    let mut rest: Vec<&str> = parts.collect();
    if rest.last() == Some(&"") {
        rest.pop();
    }
    let mut target = Target { group, version, ..Target::default() };
    if rest.first() == Some(&"watch") {
        target.watch_prefix = true;
        rest.remove(0);
    }
    // `namespaces/NAME/status` and `namespaces/NAME/finalize` are subresources of the namespace itself.
    let scoped = rest.len() > 2 && rest[0] == "namespaces" && !matches!(rest[2], "status" | "finalize");
    if scoped {
        rest[1].clone_into(&mut target.namespace);
        rest.drain(..2);
    }
    let mut rest = rest.into_iter();
    rest.next().unwrap_or_default().clone_into(&mut target.resource);
    rest.next().unwrap_or_default().clone_into(&mut target.name);
    target.subresource = rest.collect::<Vec<_>>().join("/");
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_targets() {
        let target = parse_path("/apis/apps/v1/namespaces/n/deployments/web/scale").unwrap();
        assert_eq!((target.group.as_str(), target.version.as_str()), ("apps", "v1"));
        assert_eq!((target.namespace.as_str(), target.resource.as_str()), ("n", "deployments"));
        assert_eq!((target.name.as_str(), target.subresource.as_str()), ("web", "scale"));

        let target = parse_path("/api/v1/namespaces/n/finalize").unwrap();
        assert_eq!((target.namespace.as_str(), target.resource.as_str()), ("", "namespaces"));
        assert_eq!((target.name.as_str(), target.subresource.as_str()), ("n", "finalize"));

        let target = parse_path("/api/v1/watch/namespaces/n/pods").unwrap();
        assert!(target.watch_prefix);
        assert_eq!((target.namespace.as_str(), target.resource.as_str()), ("n", "pods"));
        assert_eq!(parse_path("/healthz"), None);
    }

    #[test]
    fn queries_are_decoded() {
        let query = parse_query("labelSelector=a%3Db%2Cc&watch&x=1+2&bad=%zz");
        let expected = [("labelSelector", "a=b,c"), ("watch", ""), ("x", "1 2"), ("bad", "%zz")];
        assert_eq!(query, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
