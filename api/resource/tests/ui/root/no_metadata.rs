use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
struct Thing {
    spec: String,
}

fn main() {}
