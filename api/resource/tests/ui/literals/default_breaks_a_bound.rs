use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(default)]
    #[koord(default = 11, maximum = 10)]
    count: i32,
}

fn main() {}
