use koord_resource::Convert;

#[derive(Convert)]
enum Target {
    Disk { path: String },
    Nothing {},
}

fn main() {}
