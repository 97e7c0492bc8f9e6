use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(maximum = 0.5)]
    count: i32,
}

fn main() {}
