use koord_resource::Resource;
use serde::Deserialize;

#[derive(Clone, Deserialize, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
struct Thing(String, u8);

fn main() {}
