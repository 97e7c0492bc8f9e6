use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster", status, scale(spec = ".spec.replicas"))]
struct Thing {
    metadata: ObjectMeta,
    status: String,
}

fn main() {}
