use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[koord(at_least_one_of("cpu"))]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<i32>,
}

fn main() {}
