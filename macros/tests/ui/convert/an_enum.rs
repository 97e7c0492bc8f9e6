use koord_resource::Convert;

#[derive(Convert)]
enum Mode {
    Now,
}

fn main() {}
