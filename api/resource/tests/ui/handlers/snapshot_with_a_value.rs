use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, Validate};

#[derive(Clone, Resource, Validate)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(admission(validate(path = "/validate-thing", name = "v.thing.example.com", on = [Create], snapshot = "Caches")))]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
