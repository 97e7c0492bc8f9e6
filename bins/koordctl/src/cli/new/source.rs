//! Where a project gets the library from.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

/// The facade, in a checkout.
const FACADE: &str = "api/koord";

/// Where a project gets the library from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The registry, in the version of this program.
    Version,
    /// A repository of git, by its URL.
    Git(String),
    /// A checkout, by its folder.
    Path(PathBuf),
}

impl Source {
    /// Reads `version`, `git=URL` or `path=DIR`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "version" => Ok(Self::Version),
            Some(("git", url)) if !url.is_empty() => Ok(Self::Git(url.to_owned())),
            Some(("path", folder)) if !folder.is_empty() => Ok(Self::Path(PathBuf::from(folder))),
            _ => {
                Err("version, git=URL with the repository of the library, or path=DIR with a checkout of it".to_owned())
            }
        }
    }

    /// As it stands in the table of a dependency.
    pub(crate) fn dependency(&self) -> Result<String> {
        // A text of JSON is one of TOML.
        Ok(match self {
            Self::Version => format!("version = {}", json!(env!("CARGO_PKG_VERSION"))),
            Self::Git(url) => format!("git = {}", json!(url)),
            Self::Path(checkout) => {
                let facade = checkout.join(FACADE);
                ensure!(
                    facade.join("Cargo.toml").is_file(),
                    "{} is no checkout of the library: there is no {FACADE}/Cargo.toml in it; name its root with --source path=DIR",
                    checkout.display()
                );
                let facade =
                    fs::canonicalize(&facade).with_context(|| format!("{} cannot be read", facade.display()))?;
                let facade = facade.to_str().with_context(|| format!("{} is no UTF-8", facade.display()))?;
                format!("path = {}", json!(facade))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_word_or_a_pair() {
        let git = "https://git.example.com/koordinator.git?a=b";
        assert_eq!(Source::parse("version"), Ok(Source::Version));
        assert_eq!(Source::parse(&format!("git={git}")), Ok(Source::Git(git.to_owned())));
        assert_eq!(Source::parse("path=.."), Ok(Source::Path(PathBuf::from(".."))));
        for wrong in ["", "path", "git=", "version=1", "crates.io"] {
            assert!(Source::parse(wrong).unwrap_err().contains("git=URL"), "{wrong}");
        }
    }

    #[test]
    fn a_dependency_is_one_of_cargo() {
        let own = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
        assert_eq!(Source::Version.dependency().unwrap(), own);
        assert_eq!(Source::Git("a\"b".to_owned()).dependency().unwrap(), r#"git = "a\"b""#);
        let checkout = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let dependency = Source::Path(checkout).dependency().unwrap();
        assert!(dependency.starts_with("path = \"/") && dependency.ends_with("/api/koord\""), "{dependency}");
        let error = Source::Path(PathBuf::from("/nowhere")).dependency().unwrap_err().to_string();
        assert!(error.contains("/nowhere is no checkout") && error.contains("--source path=DIR"), "{error}");
    }
}
