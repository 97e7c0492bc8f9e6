use koord_resource::Schema;

#[derive(Schema)]
union Spec {
    a: u8,
    b: i8,
}

fn main() {}
