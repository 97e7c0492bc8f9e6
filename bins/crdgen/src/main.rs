//! crdgen writes the documents that the declared kinds imply, and compares them with others.

use std::process::ExitCode;

use clap::Parser;
use crdgen::{Arguments, run};
use koord_program::output::print;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(answer) => {
            const DIFFERS: u8 = 1;
            print("crdgen", &answer.text, if answer.agrees { 0 } else { DIFFERS })
        }
        Err(error) => {
            eprintln!("crdgen: {error:#}");
            ExitCode::from(2)
        }
    }
}
