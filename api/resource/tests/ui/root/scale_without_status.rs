use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(scale(spec = ".spec.replicas", status = ".status.replicas"))]
struct Thing {
    metadata: ObjectMeta,
    spec: i32,
    status: Option<i32>,
}

fn main() {}
