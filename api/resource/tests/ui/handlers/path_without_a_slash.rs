use koord_resource::{admission, admission::{Request, Verdict}};

#[admission(path = "validate-pod", name = "v.pod.example.com", on = [Create])]
fn validate(_request: &Request<'_>, _snapshot: &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
