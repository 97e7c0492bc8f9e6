use koord_resource::Schema;

#[derive(Schema)]
#[koord(maximum = 3)]
enum Mode {
    Now,
}

fn main() {}
