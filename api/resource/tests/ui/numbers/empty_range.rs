use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum = 10, maximum = 1)]
    count: i64,
}

fn main() {}
