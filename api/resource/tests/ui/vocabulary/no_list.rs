use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord]
    count: i32,
}

fn main() {}
