use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(changed(since = "v2", from = String, up = parse, down = print), in_versions(until = "v2", maximum = 10))]
    count: i32,
}

fn main() {}
