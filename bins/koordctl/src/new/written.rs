//! How files come into a folder: all of them, or none, and none in the place of another.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};

use crate::names::few;

/// A file of a project.
#[derive(Debug)]
pub(super) struct File {
    /// Its path in the project's folder.
    pub(super) path: String,
    /// What is in it.
    pub(super) text: String,
}

/// Fails where something is in the way of one of the files.
pub(super) fn ensure_free(folder: &Path, files: &[File]) -> Result<()> {
    let mut obstacles: Vec<String> =
        files.iter().filter_map(|file| obstacle(folder, &file.path)).map(|path| path.display().to_string()).collect();
    obstacles.dedup();
    if obstacles.is_empty() {
        return Ok(());
    }
    bail!(
        "nothing is written, because this is there already: {}; name another folder with --in DIR, or move it away",
        few(&obstacles)
    )
}

/// What is in the way of a file: itself, or something that is no folder where one is needed. A link that leads nowhere is in the
/// way too.
fn obstacle(folder: &Path, path: &str) -> Option<PathBuf> {
    let file = folder.join(path);
    if fs::symlink_metadata(&file).is_ok() {
        return Some(file);
    }
    let nearest = file.ancestors().skip(1).find(|above| fs::symlink_metadata(above).is_ok())?;
    (!nearest.is_dir()).then(|| nearest.to_owned())
}

/// Writes all files, and the folders that they need. After an error nothing is left of what it made, or the error names it.
pub(super) fn write(folder: &Path, files: &[File]) -> Result<()> {
    ensure_free(folder, files)?;
    let mut made = Vec::new();
    for file in files {
        let path = folder.join(&file.path);
        if let Err(error) = write_one(&path, &file.text, &mut made) {
            let error = anyhow!("{} cannot be written: {error}", path.display());
            let left: Vec<String> = undo(&made).iter().map(|path| path.display().to_string()).collect();
            return Err(if left.is_empty() {
                error.context("nothing is written")
            } else {
                error.context(format!("this is left, because it cannot be removed: {}", few(&left)))
            });
        }
    }
    Ok(())
}

/// Writes one file; what it makes is added to `made` at once.
fn write_one(path: &Path, text: &str, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing = path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty() && !above.exists());
    let missing: Vec<&Path> = missing.collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder)?;
        made.push(folder.to_owned());
    }
    // Between the look for obstacles and now somebody may have made it.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    made.push(path.to_owned());
    file.write_all(text.as_bytes())
}

/// Removes what was made, the latest first, and gives what is left of it.
fn undo(made: &[PathBuf]) -> Vec<&PathBuf> {
    let remove = |path: &Path| if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
    let is_left = |path: &&PathBuf| remove(path).is_err_and(|error| error.kind() != ErrorKind::NotFound);
    made.iter().rev().filter(is_left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> File {
        File { path: path.to_owned(), text: "text".to_owned() }
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn folders_are_made_where_they_are_missing() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("a/.git")).unwrap();
        write(&home.path().join("a"), &[file("b/c/d"), file("b/e")]).unwrap();
        assert_eq!(entries(&home.path().join("a")), [".git", "b"]);
        assert_eq!(fs::read_to_string(home.path().join("a/b/c/d")).unwrap(), "text");
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_and_a_link_are_in_the_way() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("b"), "mine").unwrap();
        std::os::unix::fs::symlink("/nowhere", home.path().join("link")).unwrap();
        let error = write(home.path(), &[file("a"), file("b/c"), file("b/d"), file("link")]).unwrap_err().to_string();
        let (b, link) = (home.path().join("b"), home.path().join("link"));
        assert!(error.contains(&format!("there already: {}, {}; ", b.display(), link.display())), "{error}");
        assert_eq!(entries(home.path()), ["b", "link"]);
    }

    #[test]
    fn after_an_error_nothing_is_left() {
        let home = tempfile::tempdir().unwrap();
        // The second file needs a folder where the first one is.
        let error = write(&home.path().join("x/y"), &[file("a/b"), file("a/b/c")]).unwrap_err();
        assert!(format!("{error:#}").starts_with("nothing is written: "), "{error:#}");
        assert_eq!(entries(home.path()), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_removed_is_named() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("a")).unwrap();
        fs::write(home.path().join("a/mine"), "").unwrap();
        let made = [home.path().join("a"), home.path().join("b")];
        assert_eq!(undo(&made), [&made[0]]);
    }
}
