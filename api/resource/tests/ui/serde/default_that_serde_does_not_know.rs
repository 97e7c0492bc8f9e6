use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(default = 3)]
    count: i32,
}

fn main() {}
