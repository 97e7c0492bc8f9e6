use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(pattern = "^a$")]
    enabled: bool,
}

fn main() {}
