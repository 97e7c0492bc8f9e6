use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(rename(serialize = "a", deserialize = "b"))]
    name: String,
}

fn main() {}
