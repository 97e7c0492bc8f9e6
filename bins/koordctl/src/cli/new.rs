//! What `new` can write.

pub(crate) mod names;
mod source;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use self::source::Source;

/// What `new` can write.
#[derive(Debug, Subcommand)]
pub enum NewCommand {
    /// Write the project of an operator: a kind, its controller, tests, manifests, image and CI
    ///
    /// The project compiles and passes its tests, which run the operator on an API server of their own. Comments in it say what is written where.
    /// Nothing is overwritten: where one of its files is there already, none is written.
    #[command(
        disable_version_flag = true,
        after_help = "\
Examples:
  koordctl new operator shop-operator --kind Shop --group example.com
  koordctl new operator backups --kind Backup --group db.example.com --version v1alpha1 --webhooks
  koordctl new operator fleet --kind Fleet --group example.com --cluster --in . --dry-run
  koordctl new operator shop-operator --kind Shop --group example.com --source path=koordinator

Lines of Rust are broken by rustfmt, if it is installed. No cluster is asked. Exit code: 0 when the project is written, 2 when nothing is."
    )]
    Operator(NewOperatorArgs),
}

/// Options of `new operator`.
#[derive(Clone, Debug, Args)]
pub struct NewOperatorArgs {
    /// The name of the operator: of its package, its program, and what installs it
    #[arg(value_parser = names::operator)]
    pub name: String,
    /// The kind that it brings, such as Shop
    #[arg(long, value_parser = names::kind)]
    pub kind: String,
    /// The API group of the kind, a domain such as shop.example.com
    #[arg(long, value_parser = names::group)]
    pub group: String,
    /// The version of the kind
    #[arg(long = "version", value_name = "VERSION", default_value = "v1", value_parser = names::version)]
    pub api_version: String,
    /// Objects of the kind are in namespaces, which is the default
    #[arg(long, conflicts_with = "cluster")]
    pub namespaced: bool,
    /// Objects of the kind are in no namespace
    #[arg(long)]
    pub cluster: bool,
    /// With admission webhooks, for changes and checks that the definition cannot express
    #[arg(long)]
    pub webhooks: bool,
    /// The folder of the project; without it one of the operator's name
    #[arg(long = "in", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Where the library comes from: version (the one of this program), git=URL, or path=DIR for a checkout, which an image is not built from
    #[arg(long, default_value = "version", value_parser = Source::parse)]
    pub source: Source,
    /// Print the paths of the files, and write none
    #[arg(long)]
    pub dry_run: bool,
}
