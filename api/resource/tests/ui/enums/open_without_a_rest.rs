use koord_resource::Schema;

#[derive(Schema)]
#[koord(open)]
enum Mode {
    Now,
}

fn main() {}
