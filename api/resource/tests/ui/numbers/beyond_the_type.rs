use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(maximum = 300)]
    percent: u8,
}

fn main() {}
