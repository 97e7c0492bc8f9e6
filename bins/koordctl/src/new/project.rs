//! The files of a project: templates, in which lines are chosen and names are put in.

use anyhow::Result;

use super::written::File;
use crate::cli::{NewOperatorArgs, new_names};

/// The edition of Rust that the templates are written in.
pub(super) const EDITION: &str = "2024";
/// The files of Rust that no other one names by `mod`.
pub(super) const ROOTS: [&str; 3] = ["src/lib.rs", "src/main.rs", "tests/operator.rs"];

/// What a line begins with that belongs to a project with webhooks, or to one without.
const WITH_WEBHOOKS: &str = "+webhooks|";
const WITHOUT_WEBHOOKS: &str = "-webhooks|";

/// Path and text of each file.
const TEMPLATES: [(&str, &str); 15] = [
    (".dockerignore", include_str!("templates/dockerignore.template")),
    (".github/workflows/ci.yaml", include_str!("templates/ci.yaml.template")),
    (".gitignore", include_str!("templates/gitignore.template")),
    ("Cargo.toml", include_str!("templates/Cargo.toml.template")),
    ("Containerfile", include_str!("templates/Containerfile.template")),
    ("README.md", include_str!("templates/README.md.template")),
    ("config/kustomization.yaml", include_str!("templates/kustomization.yaml.template")),
    ("config/sample.yaml", include_str!("templates/sample.yaml.template")),
    ("rustfmt.toml", include_str!("templates/rustfmt.toml.template")),
    ("src/controller.rs", include_str!("templates/controller.rs.template")),
    ("src/lib.rs", include_str!("templates/lib.rs.template")),
    ("src/main.rs", include_str!("templates/main.rs.template")),
    ("src/{{module}}.rs", include_str!("templates/kind.rs.template")),
    ("+webhooks|src/webhooks.rs", include_str!("templates/webhooks.rs.template")),
    ("tests/operator.rs", include_str!("templates/operator.rs.template")),
];

/// An operator that is to be written.
pub(super) struct Project {
    has_webhooks: bool,
    /// What stands in a template as `{{name}}`, and what is put in its place.
    names: Vec<(&'static str, String)>,
}

impl Project {
    /// The operator of a command line.
    pub(super) fn of(args: &NewOperatorArgs) -> Result<Self> {
        let NewOperatorArgs { name, kind, group, api_version, cluster, webhooks: has_webhooks, .. } = args;
        let module = new_names::module(kind);
        let (scope, api) = if *cluster {
            ("Cluster", format!("koord::kube::Api::<{kind}>::all(cluster.client())"))
        } else {
            ("Namespaced", format!("cluster.api::<{kind}>()"))
        };
        let names = vec![
            ("name", name.clone()),
            ("crate", name.replace('-', "_")),
            ("kind", kind.clone()),
            ("lower", kind.to_lowercase()),
            ("modules", modules(&module, *has_webhooks)),
            ("module", module),
            ("group", group.clone()),
            ("version", api_version.clone()),
            ("scope", scope.to_owned()),
            ("api", api),
            ("koord", args.source.dependency()?),
            ("edition", EDITION.to_owned()),
            ("rust_version", env!("CARGO_PKG_RUST_VERSION").to_owned()),
        ];
        Ok(Self { has_webhooks: *has_webhooks, names })
    }

    /// Its files, by their paths.
    pub(super) fn files(&self) -> Vec<File> {
        let file = |(path, template): &(&str, &str)| {
            let lines = template.lines().filter_map(|line| self.chosen(line)).map(|line| self.filled(line) + "\n");
            Some(File { path: self.filled(self.chosen(path)?), text: lines.collect() })
        };
        TEMPLATES.iter().filter_map(file).collect()
    }

    /// The rest of a line that belongs to this project.
    fn chosen<'l>(&self, line: &'l str) -> Option<&'l str> {
        match (line.strip_prefix(WITH_WEBHOOKS), line.strip_prefix(WITHOUT_WEBHOOKS)) {
            (Some(rest), _) => self.has_webhooks.then_some(rest),
            (_, Some(rest)) => (!self.has_webhooks).then_some(rest),
            (None, None) => Some(line),
        }
    }

    fn filled(&self, line: &str) -> String {
        self.names.iter().fold(line.to_owned(), |line, (name, value)| line.replace(&format!("{{{{{name}}}}}"), value))
    }
}

/// The declarations of the modules, sorted as rustfmt sorts them.
fn modules(kind: &str, has_webhooks: bool) -> String {
    let mut modules = vec!["controller", kind];
    if has_webhooks {
        modules.push("webhooks");
    }
    modules.sort_unstable();
    modules.iter().map(|module| format!("pub mod {module};")).collect::<Vec<_>>().join("\n")
}
