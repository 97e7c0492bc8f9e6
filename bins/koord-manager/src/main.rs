//! koord-manager

fn main() {}
