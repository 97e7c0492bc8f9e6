use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(in_versions(since = "v2", default = 1))]
    count: Option<i32>,
}

fn main() {}
