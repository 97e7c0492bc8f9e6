use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(required)]
    name: Option<String>,
}

fn main() {}
