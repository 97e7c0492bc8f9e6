use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;
use serde::Deserialize;

#[derive(Clone, Deserialize, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster", plural = "Things")]
struct Thing {
    metadata: ObjectMeta,
}

fn kind<R: Resource>() -> &'static str {
    R::INFO.kind
}

fn main() {
    println!("{}", kind::<Thing>());
}
