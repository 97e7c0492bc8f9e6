use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(in_versions(maximum = 10))]
    count: i32,
}

fn main() {}
