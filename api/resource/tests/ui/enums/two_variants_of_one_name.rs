use koord_resource::Schema;
use serde::Serialize;

#[derive(Serialize, Schema)]
enum Mode {
    Now,
    #[serde(rename = "Now")]
    Later,
}

fn main() {}
