use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(default)]
    #[koord(optional(true))]
    count: i32,
}

fn main() {}
