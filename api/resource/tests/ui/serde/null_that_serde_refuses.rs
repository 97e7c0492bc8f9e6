use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(nullable)]
    name: String,
}

fn main() {}
