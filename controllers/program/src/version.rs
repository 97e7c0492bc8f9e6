//! What the program says of its version.

use std::env::consts::{ARCH, OS};

use crate::{Build, flags::switch};

/// How much of its version a program shows, and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownVersion {
    /// None of it: the program runs.
    Nothing,
    /// The name of the program and its version.
    Version,
    /// All that is known of the build, in the form of Go's programs.
    Raw,
}

/// Reads a value of `--version`: `true`, `false` or `raw`. An error names what it may be.
pub fn shown_version(text: &str) -> Result<ShownVersion, String> {
    match switch(text) {
        Ok(true) => Ok(ShownVersion::Version),
        Ok(false) => Ok(ShownVersion::Nothing),
        Err(_) if text == "raw" => Ok(ShownVersion::Raw),
        Err(_) => Err(format!("{text:?} is none of true, false and raw")),
    }
}

impl ShownVersion {
    /// The line that is shown; none where nothing was asked for.
    pub fn line(self, build: &Build) -> Option<String> {
        let version = build.version;
        match self {
            Self::Nothing => None,
            Self::Version => Some(format!("{} {version}", build.program)),
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
    use koord_runtime::metrics::{Description, Unit};

    use super::*;

    const BUILD: Build = Build {
        program: "shop",
        version: "0.7.1",
        field_manager: "shop",
        namespace: "shop",
        gates: &[],
        info: Description::gauge("shop_build_info", &["version", "language"], "What runs.").unit(Unit::YesNo),
    };

    #[test]
    fn the_version_is_shown_as_it_is_asked_for() {
        let line = |text| shown_version(text).map(|shown| shown.line(&BUILD));
        assert_eq!(line("true"), Ok(Some("shop 0.7.1".to_owned())));
        assert_eq!(line("false"), Ok(None));
        let raw = line("raw").unwrap().unwrap();
        assert!(
            raw.starts_with("version.Info{Major:\"0\", Minor:\"7\"") && raw.contains("GitVersion:\"v0.7.1\""),
            "{raw}"
        );
        assert!(line("v1.2.3").unwrap_err().contains("raw"));
    }
}
