use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(in_versions(since = "v1", maximum = 10), in_versions(since = "v2", maximum = 5))]
    count: i32,
}

fn main() {}
