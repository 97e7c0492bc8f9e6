use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "map", list_map_key = name)]
    users: Vec<User>,
}

#[derive(Schema)]
struct User {
    name: String,
}

fn main() {}
