//! koord-envtest

fn main() {}
