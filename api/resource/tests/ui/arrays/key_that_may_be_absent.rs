use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[koord(list_type = "map", list_map_key("host", "zone", "name"))]
    ports: Vec<Port>,
}

#[derive(Serialize, Schema)]
struct Port {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = "a")]
    zone: Option<String>,
    name: String,
}

fn main() {}
