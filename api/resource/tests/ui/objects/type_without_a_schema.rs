use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    window: Window,
}

struct Window(u8);

fn main() {}
