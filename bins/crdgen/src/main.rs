//! crdgen

fn main() {}
