use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[koord(exactly_one_of("cpu", "memory"))]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<i32>,
}

fn main() {}
