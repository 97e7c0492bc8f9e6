use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(min_properties = 1)]
    names: Vec<String>,
}

fn main() {}
