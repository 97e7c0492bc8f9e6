use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(in_versions(since = "v2", until = "v1", maximum = 10))]
    count: i32,
}

fn main() {}
