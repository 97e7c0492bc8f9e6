//! What the program says of its version.

use std::env::consts::{ARCH, OS};

use koord_program::flags::switch;

use crate::identity::BUILD;

/// How much of it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    Version,
    /// All that is known of the build, in the form of Go's programs.
    Raw,
}

/// Reads a value of `--version`.
pub(crate) fn shown(text: &str) -> Result<Shown, String> {
    match switch(text) {
        Ok(true) => Ok(Shown::Version),
        Ok(false) => Ok(Shown::Nothing),
        Err(_) if text == "raw" => Ok(Shown::Raw),
        Err(_) => Err(format!("{text:?} is none of true, false and raw")),
    }
}

impl Shown {
    /// The line that is shown; none where nothing was asked for.
    pub(crate) fn line(self) -> Option<String> {
        let version = BUILD.version;
        match self {
            Self::Nothing => None,
            Self::Version => Some(format!("{} {version}", BUILD.program)),
            Self::Raw => {
                let mut numbers = version.split('.');
                let [major, minor] = [(); 2].map(|()| numbers.next().unwrap_or_default());
                Some(format!(
                    "version.Info{{Major:\"{major}\", Minor:\"{minor}\", GitVersion:\"v{version}\", Compiler:\"rustc\", \
                     Platform:\"{OS}/{ARCH}\"}}"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_shown_as_it_is_asked_for() {
        let line = |text| shown(text).map(Shown::line);
        assert_eq!(line("true"), Ok(Some(format!("koord-scheduler {}", env!("CARGO_PKG_VERSION")))));
        assert_eq!(line("false"), Ok(None));
        let raw = line("raw").unwrap().unwrap();
        assert!(raw.starts_with("version.Info{Major:\"0\", Minor:\"") && raw.contains("GitVersion:\"v0."), "{raw}");
        assert!(line("v1.2.3").unwrap_err().contains("raw"));
    }
}
