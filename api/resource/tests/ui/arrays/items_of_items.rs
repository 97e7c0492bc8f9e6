use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(items(items(pattern = "a")))]
    table: Vec<Vec<i32>>,
}

fn main() {}
