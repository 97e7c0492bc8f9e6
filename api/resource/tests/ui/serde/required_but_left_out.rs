use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

fn main() {}
