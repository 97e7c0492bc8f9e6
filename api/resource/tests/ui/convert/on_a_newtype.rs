use koord_resource::Convert;

#[derive(Convert)]
struct Size(#[koord(renamed(since = "v1", from = "megabytes"))] i32);

fn main() {}
