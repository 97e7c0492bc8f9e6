use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(maximum = 1)]
    names: Vec<i32>,
}

fn main() {}
