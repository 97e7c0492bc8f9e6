use koord_resource::Schema;

#[derive(Schema)]
enum Mode {
    #[koord(minimum = 1)]
    Now,
}

fn main() {}
