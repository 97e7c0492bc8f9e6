//! The flag `--config`: the configuration file of a program.

use std::path::PathBuf;

use koord_configuration::{Configuration, ConfigurationError, Source, without_document};

use crate::{files::read_configuration, flags::wrong};

/// The flag, without its dashes.
const CONFIG: &str = "config";

/// The flag that names the configuration file. [`run_configured`](crate::run_configured) has it; a program with flags of its own flattens it
/// into its options.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConfigFlag {
    /// The configuration file, YAML or JSON of at most 1 MiB. Without it every field has its default.
    #[arg(long = CONFIG, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFlag {
    /// The configuration of the file, or the one without a document, with all that is not set.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is longer than 1 MiB, or its configuration is wrong: each mistake is named with line and field. Without a
    /// file, fields that must be set.
    pub fn read<T: Configuration>(&self) -> Result<T, clap::Error> {
        let Some(file) = &self.config else {
            return without_document().map_err(|problems| {
                let problems = problems.into_iter().map(|problem| (0, problem)).collect();
                wrong(CONFIG, ConfigurationError { name: "without a file".to_owned(), problems })
            });
        };
        let name = file.display().to_string();
        let text =
            read_configuration(file).map_err(|error| wrong(CONFIG, format!("{name} cannot be read: {error}")))?;
        Source::new(&name, &text).read().map_err(|error| wrong(CONFIG, error))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use serde::{Deserialize, Serialize};

    use super::*;

    /// The configuration of a cleaner.
    #[derive(Debug, PartialEq, Serialize, Deserialize, Configuration)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    #[koord(group = "cleaner.example.com", version = "v1")]
    struct CleanerConfiguration {
        /// What is cleaned.
        #[koord(required)]
        target: String,
    }

    /// What is read of what `write` leaves at a path. The folder is left out of messages.
    fn read_written(write: impl FnOnce(&Path)) -> Result<CleanerConfiguration, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        write(&file);
        let folder = format!("{}/", folder.path().display());
        let read = ConfigFlag { config: Some(file) }.read();
        read.map_err(|error| error.to_string().replace(&folder, ""))
    }

    /// What is read of a file with this content.
    fn read(content: impl AsRef<[u8]>) -> Result<CleanerConfiguration, String> {
        read_written(|file| fs::write(file, content).unwrap())
    }

    #[test]
    fn the_configuration_of_a_file_is_read_or_refused_with_its_line() {
        let head = "apiVersion: cleaner.example.com/v1\nkind: CleanerConfiguration\n";
        let text = format!("{head}target: logs\n");
        let logs = || Ok(CleanerConfiguration { target: "logs".to_owned() });
        assert_eq!(read(&text), logs());
        assert_eq!(read(format!("\u{feff}---\n{text}")), logs(), "after the mark that editors write");
        assert_eq!(
            read(format!("{head}targte: logs\n")).unwrap_err(),
            "error: --config: config.yaml:3: targte: unknown field; did you mean target?\nconfig.yaml:1: target: must be set\n"
        );
        assert_eq!(read(head).unwrap_err(), "error: --config: config.yaml:1: target: must be set\n");
        for empty in ["", "# nothing\n", "null\n"] {
            let message = read(empty).unwrap_err();
            assert!(message.contains("there is nothing in it; write a CleanerConfiguration of cleaner"), "{message}");
        }
        let message = read(format!("{text}---\n{text}")).unwrap_err();
        assert!(message.contains("more than one document, where one is expected"), "{message}");
    }

    #[test]
    fn what_is_no_text_of_a_file_cannot_be_read() {
        let refused = |message: Result<CleanerConfiguration, String>, why: &str| {
            let message = message.unwrap_err();
            assert!(message.starts_with(&format!("error: --config: config.yaml cannot be read: {why}")), "{message}");
        };
        refused(read("#".repeat((1 << 20) + 1)), "it is longer than 1 MiB\n");
        refused(read([0xff_u8]), "it is not UTF-8\n");
        refused(read_written(|_| {}), "No such file");
        refused(read_written(|folder| fs::create_dir(folder).unwrap()), "Is a directory");
    }

    #[test]
    fn without_a_file_the_defaults_are_checked_too() {
        let error = ConfigFlag::default().read::<CleanerConfiguration>().unwrap_err();
        assert_eq!(error.to_string(), "error: --config: without a file: target: must be set\n");
    }
}
