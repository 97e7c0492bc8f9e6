use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(items(requird))]
    names: Vec<String>,
}

fn main() {}
