use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[serde(untagged)]
enum Target {
    Nothing,
    Disk { path: String },
}

fn main() {}
