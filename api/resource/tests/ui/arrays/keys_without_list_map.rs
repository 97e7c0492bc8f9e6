use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_map_key = "name")]
    names: Vec<Other>,
}

#[derive(Schema)]
struct Other {}

fn main() {}
