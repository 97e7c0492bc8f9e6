use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimum = -1)]
    percent: u32,
}

fn main() {}
