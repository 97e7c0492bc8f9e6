use koord_resource::{admission, admission::{Request, Verdict}};

#[admission(path = "/validate-pod", name = "v.example.com", on = [Create])]
fn validate(_request: &Request<'_>) -> Verdict {
    Verdict::allow()
}

fn main() {}
