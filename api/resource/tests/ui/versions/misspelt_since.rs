use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(in_versions(sinc = "v2", maximum = 10))]
    count: i32,
}

fn main() {}
