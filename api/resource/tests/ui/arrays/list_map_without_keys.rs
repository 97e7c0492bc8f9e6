use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "map")]
    names: Vec<Other>,
}

#[derive(Schema)]
struct Other {}

fn main() {}
