use koord_resource::{admission, admission::{Request, Verdict}};

#[admission(path = "/validate-pod", name = "v.example.com")]
fn validate(_request: &Request<'_>, _snapshot: &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
