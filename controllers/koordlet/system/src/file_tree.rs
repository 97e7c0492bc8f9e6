//! What discovery reads: the files of this machine, or of a recorded one.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use crate::{
    files,
    parse_error::ParseError,
    text::{Field, unsigned_32},
};

/// Files and folders by their path.
pub trait FileTree {
    /// The content of a file.
    ///
    /// # Errors
    ///
    /// The file is not there or cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names of the files, folders and links in a folder, sorted.
    ///
    /// # Errors
    ///
    /// The folder is not there or cannot be read.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// The path of a file or folder with all links followed: in sysfs, where a device is on its buses.
    ///
    /// # Errors
    ///
    /// The path is not there, or a link on it leads nowhere.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostTree;

/// The files of a recorded machine: contents by path. Folders are what paths lead through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTree(pub BTreeMap<PathBuf, Vec<u8>>);

/// A file of a machine that is there and is not understood. Discovery goes on without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct SkippedFile {
    /// The file.
    pub path: PathBuf,
    /// Why it is not understood.
    #[source]
    pub reason: ParseError,
}

/// Reads files for discovery: what is not there is `None`, what is not understood is noted.
pub(crate) struct Reader<'a> {
    tree: &'a dyn FileTree,
    pub(crate) skipped: Vec<SkippedFile>,
}

// === impl FileTree ===

impl FileTree for HostTree {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        files::read(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(folder)?;
        let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }
}

impl FileTree for RecordedTree {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let below = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let mut names: Vec<_> = below.filter_map(|path| Some(path.iter().next()?.to_str()?.to_owned())).collect();
        names.dedup();
        if names.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(names) }
    }

    /// A recorded machine has no links: every path is its own.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let is_there = self.0.contains_key(path) || self.names(path).is_ok();
        if is_there { Ok(path.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl<P: Into<PathBuf>, T: Into<Vec<u8>>> FromIterator<(P, T)> for RecordedTree {
    fn from_iter<I: IntoIterator<Item = (P, T)>>(files: I) -> Self {
        Self(files.into_iter().map(|(path, content)| (path.into(), content.into())).collect())
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(crate) fn new(tree: &'a dyn FileTree) -> Self {
        Self { tree, skipped: Vec::new() }
    }

    /// The content of a file without blanks at its ends.
    pub(crate) fn text(&self, path: &Path) -> Option<Vec<u8>> {
        self.tree.read(path).ok().map(|content| content.trim_ascii().to_vec())
    }

    /// What a file says.
    pub(crate) fn parsed<T>(&mut self, path: &Path, parse: impl FnOnce(&[u8]) -> Result<T, ParseError>) -> Option<T> {
        let text = self.tree.read(path).ok()?;
        parse(&text).map_err(|reason| self.skipped.push(SkippedFile { path: path.to_owned(), reason })).ok()
    }

    /// The names in a folder; none where it is not there.
    pub(crate) fn names(&self, folder: &Path) -> Vec<String> {
        self.tree.names(folder).unwrap_or_default()
    }

    /// The entries of a folder that are named like `cpu12`, in the order of their numbers.
    pub(crate) fn numbered(&self, folder: &Path, name: &str) -> Vec<(u32, PathBuf)> {
        let number = |entry: &String| unsigned_32(entry.strip_prefix(name)?.as_bytes());
        let mut entries: Vec<_> =
            self.names(folder).iter().filter_map(|entry| Some((number(entry)?, folder.join(entry)))).collect();
        entries.sort_unstable();
        entries
    }
}

/// Reads a file of sysfs that holds one number.
pub(crate) fn number_of(file: &'static str) -> impl FnOnce(&[u8]) -> Result<u32, ParseError> {
    move |text| {
        let text = text.trim_ascii();
        unsigned_32(text).ok_or_else(|| Field { file, field: "value" }.malformed(text, "a number from 0 to 4294967295"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_files_are_in_folders() {
        let tree: RecordedTree =
            [("/a/cpu10/x", "1"), ("/a/cpu2/x", " 2\n"), ("/a/cpufreq/x", "3"), ("/b", "4")].into_iter().collect();
        assert_eq!(tree.names(Path::new("/a")).unwrap(), ["cpu10", "cpu2", "cpufreq"]);
        assert_eq!(tree.names(Path::new("/c")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(tree.resolve(Path::new("/a/cpu2")).unwrap(), Path::new("/a/cpu2"));
        assert_eq!(tree.resolve(Path::new("/c")).unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut reader = Reader::new(&tree);
        let cpus = reader.numbered(Path::new("/a"), "cpu");
        assert_eq!(cpus, [(2, "/a/cpu2".into()), (10, "/a/cpu10".into())]);
        assert_eq!(reader.text(Path::new("/a/cpu2/x")), Some(b"2".to_vec()));
        assert_eq!(reader.parsed(Path::new("/a/cpu2/x"), number_of("x")), Some(2));
        assert_eq!(reader.parsed(Path::new("/a/cpu3/x"), number_of("x")), None);
        assert!(reader.skipped.is_empty());
        assert_eq!(reader.parsed(Path::new("/b"), |text| number_of("b")(&[text, b"x"].concat())), None);
        let skipped: Vec<_> = reader.skipped.iter().map(ToString::to_string).collect();
        assert_eq!(skipped, [r#"/b: b: value is "4x", not a number from 0 to 4294967295"#]);
    }

    #[test]
    fn this_machine_has_files_too() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b"), "1").unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        assert_eq!(HostTree.names(folder.path()).unwrap(), ["a", "b"]);
        assert_eq!(HostTree.read(&folder.path().join("b")).unwrap(), b"1");
        assert_eq!(HostTree.names(&folder.path().join("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::os::unix::fs::symlink("a/../b", folder.path().join("link")).unwrap();
        let resolved = HostTree.resolve(&folder.path().join("link")).unwrap();
        assert_eq!(resolved, folder.path().canonicalize().unwrap().join("b"));
        assert!(HostTree.resolve(&folder.path().join("c")).is_err());
    }
}
