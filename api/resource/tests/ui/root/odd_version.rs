use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "1.0", scope = "Cluster")]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
