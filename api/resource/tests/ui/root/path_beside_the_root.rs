use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(column(name = "Size", type = "integer", path = ".sepc.size"))]
#[koord(column(name = "Zone", type = "string", path = ".zone"))]
#[koord(column(name = "Mode", type = "string", path = ".mode", until = "v1"))]
#[koord(column(name = "Always", type = "string", path = ".mode"))]
#[koord(removed(since = "v1", name = "mode", type = Option<String>))]
struct Thing {
    metadata: ObjectMeta,
    spec: i32,
}

fn main() {}
