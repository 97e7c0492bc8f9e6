use koord_resource::Schema;
use serde::Serialize;

#[derive(Clone, Serialize, Schema)]
#[serde(into = "String")]
struct Spec {
    name: String,
}

impl From<Spec> for String {
    fn from(spec: Spec) -> Self {
        spec.name
    }
}

fn main() {}
