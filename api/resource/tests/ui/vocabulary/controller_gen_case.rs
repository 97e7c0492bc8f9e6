use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minLength = 1)]
    name: String,
}

fn main() {}
