//! The program: everything is in the library.

use kubestep::cli::Exit;

fn main() -> Exit {
    kubestep::cli::main()
}
