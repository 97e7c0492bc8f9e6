//! The files by which Terway's agent knows the bandwidths of pods.

use std::{fs, io, path::Path};

use koord_koordlet_hooks::network::terway::{NODE_FILE, POD_FILE, TerwayFiles};

/// Makes the files below the folder of Terway say this; without any they are removed. Files that say it already are left as they are.
///
/// # Errors
///
/// The folder is not there, or a file cannot be written, with its path.
pub(crate) fn set_terway_files(folder: &Path, files: Option<&TerwayFiles>) -> Result<(), String> {
    for (file, text) in [(POD_FILE, files.map(|files| &files.pods)), (NODE_FILE, files.map(|files| &files.node))] {
        let path = folder.join(file);
        let result = match text {
            Some(text) => replace(&path, text),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            },
        };
        result.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Replaces a file as a whole. Its folder is made, unless the one above is missing: then Terway is not installed, or its folder is not mounted.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        fs::create_dir(folder)?;
    }
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_the_plan_and_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let files = |pods: &str| TerwayFiles { pods: pods.to_owned(), node: "hw_tx_bps_max 1\n".to_owned() };
        let text = |file: &str| fs::read_to_string(folder.path().join(file)).ok();
        for pods in ["{}", "{\"1\":{}}"] {
            set_terway_files(folder.path(), Some(&files(pods))).unwrap();
            assert_eq!(text(POD_FILE).as_deref(), Some(pods));
            assert_eq!(text(NODE_FILE).as_deref(), Some("hw_tx_bps_max 1\n"));
        }
        set_terway_files(folder.path(), None).unwrap();
        assert_eq!((text(POD_FILE), text(NODE_FILE)), (None, None));
        set_terway_files(folder.path(), None).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = set_terway_files(
            Path::new("/nonexistent"),
            Some(&TerwayFiles { pods: String::new(), node: String::new() }),
        );
        assert!(error.unwrap_err().starts_with("/nonexistent/qos/pod.json: "));
        assert_eq!(set_terway_files(Path::new("/nonexistent"), None), Ok(()));
    }
}
