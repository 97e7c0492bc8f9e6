use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(exclusive_minimum)]
    count: i64,
}

fn main() {}
