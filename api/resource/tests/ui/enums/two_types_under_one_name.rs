use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[serde(tag = "type")]
enum Target {
    Disk { size: i32 },
    Bucket { size: String },
}

fn main() {}
