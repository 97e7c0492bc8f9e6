use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, Schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(selectable(".tags"), selectable(".spec.pool.zones"), column(name = "Size", type = "integer", path = ".spec.pool.sice"))]
struct Thing {
    metadata: ObjectMeta,
    spec: ThingSpec,
    tags: Vec<String>,
}

#[derive(Clone, Deserialize, Serialize, Schema)]
struct ThingSpec {
    pool: Pool,
}

#[derive(Clone, Deserialize, Serialize, Schema)]
struct Pool {
    size: i32,
    zones: Vec<String>,
}

fn main() {}
