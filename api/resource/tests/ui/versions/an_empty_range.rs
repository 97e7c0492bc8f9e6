use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum = 10, in_versions(until = "v2", maximum = 20), in_versions(since = "v2", maximum = 1))]
    count: i32,
}

fn main() {}
