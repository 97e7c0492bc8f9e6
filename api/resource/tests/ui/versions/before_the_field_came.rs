use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v2"), in_versions(until = "v1", maximum = 10))]
    count: Option<i32>,
}

fn main() {}
