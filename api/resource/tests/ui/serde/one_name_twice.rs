use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: String,
    #[serde(rename = "nodeName")]
    name: String,
}

fn main() {}
