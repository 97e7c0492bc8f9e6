use koord_resource::Convert;

#[derive(Convert)]
#[koord(removed(since = "v1", name = "mode", type = Option<String>))]
enum Mode {
    Fast,
    Slow,
}

fn main() {}
