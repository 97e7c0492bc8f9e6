use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(items(minimum = 1))]
    names: Vec<String>,
}

fn main() {}
