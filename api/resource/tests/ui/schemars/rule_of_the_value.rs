use koord_resource::Schema;

#[derive(schemars::JsonSchema)]
struct Window(u8);

#[derive(Schema)]
struct Spec {
    #[koord(schemars, maximum = 23)]
    from: Window,
}

fn main() {}
