use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Mutate, Resource};

#[derive(Clone, Resource, Mutate)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(admission(mutate(path = "/mutate-thing", name = "m.thing.example.com", on = [Create], code = 400)))]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
