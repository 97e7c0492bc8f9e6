use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(default)]
    children: Vec<Spec>,
}

fn main() {}
