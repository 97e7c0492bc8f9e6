use koord_resource::Schema;

#[derive(schemars::JsonSchema)]
struct Window(u8);

#[derive(Schema)]
struct Spec {
    #[koord(schemars, schemaless)]
    from: Window,
}

fn main() {}
