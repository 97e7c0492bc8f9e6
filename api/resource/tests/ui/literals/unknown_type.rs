use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(type = "float")]
    ratio: f64,
}

fn main() {}
