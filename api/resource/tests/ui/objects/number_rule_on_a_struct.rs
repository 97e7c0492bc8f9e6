use koord_resource::Schema;

#[derive(Schema)]
#[koord(minimum = 1)]
struct Spec {
    count: i32,
}

fn main() {}
