use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(required, optional)]
    name: String,
}

fn main() {}
