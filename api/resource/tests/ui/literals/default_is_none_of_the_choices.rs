use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(default)]
    #[koord(default = "c", enumeration("a", "b"))]
    name: String,
}

fn main() {}
