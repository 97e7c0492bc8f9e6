use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, Schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Cluster", status)]
#[koord(column(name = "Size", type = "integer", path = ".spec.sice"))]
#[koord(column(name = "Mode", type = "string", path = ".spec.mode"))]
#[koord(column(name = "Zone", type = "string", path = ".spec.zone", until = "v1"))]
#[koord(scale(spec = ".spec.size", status = ".status.replicas"))]
#[koord(selectable(".spec.ratio"), hardened(selectable = ".spec.name"))]
struct Thing {
    metadata: ObjectMeta,
    spec: ThingSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ThingStatus>,
}

#[derive(Clone, Deserialize, Serialize, Schema)]
#[koord(removed(since = "v1", name = "mode", type = Option<String>))]
struct ThingSpec {
    size: i32,
    ratio: f64,
}

#[derive(Clone, Deserialize, Serialize, Schema)]
struct ThingStatus {
    size: i32,
}

fn main() {}
