use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum = 1, minimum = 2)]
    count: i32,
}

fn main() {}
