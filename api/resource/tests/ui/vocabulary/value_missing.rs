use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum =)]
    count: i32,
}

fn main() {}
