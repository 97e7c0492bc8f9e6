use koord_resource::Schema;

struct Window(u8);

#[derive(Schema)]
struct Spec {
    #[koord(schemars)]
    from: Window,
}

fn main() {}
