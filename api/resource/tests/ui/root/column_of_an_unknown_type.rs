use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(column(name = "Age", type = "time", path = ".metadata.creationTimestamp"))]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
