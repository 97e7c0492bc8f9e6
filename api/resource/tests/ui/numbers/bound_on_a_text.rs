use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum = 1)]
    name: String,
}

fn main() {}
