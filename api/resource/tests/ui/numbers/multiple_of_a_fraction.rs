use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(multiple_of = 0.5)]
    count: i64,
}

fn main() {}
