use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(default)]
    #[koord(default = ["a", 1])]
    names: Vec<String>,
}

fn main() {}
