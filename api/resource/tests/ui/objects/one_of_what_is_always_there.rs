use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[koord(at_most_one_of("cpu", "memory"))]
struct Spec {
    cpu: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<i32>,
}

fn main() {}
