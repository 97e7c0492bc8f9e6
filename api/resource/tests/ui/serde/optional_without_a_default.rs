use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(optional)]
    name: String,
}

fn main() {}
