//! koordctl

fn main() {}
