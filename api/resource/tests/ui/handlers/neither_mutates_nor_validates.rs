use koord_resource::{admission, admission::{Request, Verdict}};

#[admission(path = "/pods", name = "v.example.com", on = [Create])]
fn validate(_request: &Request<'_>, _snapshot: &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
