use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
enum Mode {
    Now,
    #[serde(untagged)]
    Other(String),
    #[serde(untagged)]
    Another(String),
}

fn main() {}
