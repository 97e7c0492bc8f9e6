use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
enum Mode {
    Now,
    #[serde(untagged)]
    Other(i32),
}

fn main() {}
