use koord_resource::Schema;

#[derive(Schema)]
enum Target {
    Nothing,
    Disk { path: String },
}

fn main() {}
