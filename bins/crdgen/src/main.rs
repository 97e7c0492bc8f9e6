//! crdgen writes the documents that the declared kinds imply, and compares them with others.

use std::process::ExitCode;

use clap::Parser;
use crdgen::{Arguments, run};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(answer) => {
            print!("{}", answer.text);
            if answer.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("crdgen: {error:#}");
            ExitCode::from(2)
        }
    }
}
