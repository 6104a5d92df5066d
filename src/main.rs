//! kubestep.
fn main() {}
