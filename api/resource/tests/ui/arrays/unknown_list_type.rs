use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "bag")]
    names: Vec<String>,
}

fn main() {}
