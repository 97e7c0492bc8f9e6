use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(default)]
    #[koord(default = "ten")]
    count: i32,
}

fn main() {}
