use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(changed(since = "v1", from = String, up = parse, down = print))]
    count: i32,
}

fn parse(text: &str) -> i32 {
    text.len() as i32
}

fn print(count: i32) -> String {
    count.to_string()
}

fn main() {}
