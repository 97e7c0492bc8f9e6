use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = 9, in_versions(until = "v2", maximum = 5))]
    count: Option<i32>,
}

fn main() {}
