use koord_resource::Validate;

#[derive(Validate)]
struct Spec {
    window: Window,
}

struct Window(u8);

fn main() {}
