use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "set")]
    names: Vec<Vec<String>>,
}

fn main() {}
