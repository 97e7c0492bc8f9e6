use koord_resource::{admission, admission::{Request, Verdict}};

#[admission(path = "/validate-pod", name = "v.example.com", on = [Create], reinvocation_policy = IfNeeded)]
fn validate(_request: &Request<'_>, _snapshot: &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
