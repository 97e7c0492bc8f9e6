use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(pattern = "^(a$")]
    name: String,
}

fn main() {}
