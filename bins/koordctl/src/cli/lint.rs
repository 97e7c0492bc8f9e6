//! Options of `lint`.

use std::path::PathBuf;

use clap::Args;
use koord_program::output::OutputFormat;

/// Options of `lint`.
#[derive(Clone, Debug, Args)]
pub struct LintArgs {
    /// Files of YAML or JSON, also lists and folders; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Feature gates of koord-manager, of which some decide what is refused
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
}

impl LintArgs {
    /// As the linter takes them.
    pub fn options(&self) -> koord_lint::Options<'_> {
        koord_lint::Options { files: &self.files, feature_gates: &self.feature_gates, output: self.output }
    }
}
