use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
