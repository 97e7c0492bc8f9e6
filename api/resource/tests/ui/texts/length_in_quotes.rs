use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(min_length = "1")]
    name: String,
}

fn main() {}
