use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimun = 1)]
    count: i32,
}

fn main() {}
