use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[serde(default)]
struct Spec {
    #[koord(required)]
    name: String,
}

fn main() {}
