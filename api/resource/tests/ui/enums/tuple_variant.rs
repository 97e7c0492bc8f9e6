use koord_resource::Schema;

#[derive(Schema)]
enum Target {
    Disk(String, i32),
}

fn main() {}
