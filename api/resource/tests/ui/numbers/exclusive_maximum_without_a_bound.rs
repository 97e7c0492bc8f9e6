use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum = 1, exclusive_maximum)]
    count: i64,
}

fn main() {}
