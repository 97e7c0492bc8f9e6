use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(max_length = 3)]
    count: i32,
}

fn main() {}
