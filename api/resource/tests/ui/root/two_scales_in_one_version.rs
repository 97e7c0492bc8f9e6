use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster", status)]
#[koord(scale(spec = ".spec.size", status = ".status.size"), scale(spec = ".spec.count", status = ".status.count", until = "v1"))]
struct Thing {
    metadata: ObjectMeta,
    spec: i32,
    status: Option<i32>,
}

fn main() {}
