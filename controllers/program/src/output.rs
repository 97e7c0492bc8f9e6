//! Answers on standard output, for people and for programs.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::ValueEnum;
use koord_resource::document::yaml;
use serde_json::{Value, json};

/// The exit code of a command that could not be carried out.
pub const FAILED: u8 = 2;

/// What a command has to say, and how the program ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// For standard output.
    pub text: String,
    /// Exit code: 0 when what was asked for is so, 1 when it is not, and [`FAILED`] when the command failed.
    pub code: u8,
}

impl Answer {
    /// It is so.
    pub fn success(text: impl Into<String>) -> Self {
        Answer { text: text.into(), code: 0 }
    }

    /// It is not so, as the text explains.
    pub fn failure(text: impl Into<String>) -> Self {
        Answer { text: text.into(), code: 1 }
    }
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people: amounts in human units, as wide as the terminal
    #[default]
    Table,
    /// For programs: exact amounts
    Json,
    /// As JSON, written as YAML
    Yaml,
}

impl OutputFormat {
    /// An answer for programs.
    pub fn document(self, answer: &Value) -> anyhow::Result<String> {
        match self {
            Self::Yaml => Ok(yaml::document(answer)?),
            Self::Json | Self::Table => Ok(format!("{}\n", serde_json::to_string_pretty(answer)?)),
        }
    }

    /// What programs read in place of an answer; nothing for people, who read the standard error.
    pub fn error(self, why: &str) -> String {
        match self {
            Self::Table => String::new(),
            format => format.document(&json!({ "error": why })).unwrap_or_default(),
        }
    }
}

/// Prints an answer. The exit code is [`FAILED`] when it cannot be written, which the standard error says.
pub fn print(program: &str, text: &str, code: u8) -> ExitCode {
    let mut output = io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        // Whoever closed the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "{program}: the answer cannot be written: {error}");
            ExitCode::from(FAILED)
        }
        _ => ExitCode::from(code),
    }
}
