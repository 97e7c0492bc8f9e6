use koord_resource::{admission, admission::{Verdict}};

#[admission(path = "/validate-pod", name = "v.example.com", on = [Create])]
fn validate(_name: String) -> Verdict {
    Verdict::allow()
}

fn main() {}
