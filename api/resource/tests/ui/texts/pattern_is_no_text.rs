use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(pattern = 5)]
    name: String,
}

fn main() {}
