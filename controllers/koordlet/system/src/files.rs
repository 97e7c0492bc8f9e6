//! Access to the files of a node: kept descriptors for what is read every second, and writes that tests can observe.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Where the trees of a node are mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// The hierarchies of cgroups.
    pub cgroup: PathBuf,
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/sys/fs`, where resctrl is.
    pub sys_fs: PathBuf,
    pub var_run: PathBuf,
    pub run: PathBuf,
    /// The folder of the kubelet: `/var/lib/kubelet`.
    pub kubelet: PathBuf,
}

impl Roots {
    /// The trees of this machine.
    pub fn host() -> Self {
        let path = PathBuf::from;
        Self {
            cgroup: path("/sys/fs/cgroup"),
            proc: path("/proc"),
            sys: path("/sys"),
            sys_fs: path("/sys/fs"),
            var_run: path("/var/run"),
            run: path("/run"),
            kubelet: path("/var/lib/kubelet"),
        }
    }
}

/// Most bytes that are read of a file; what is longer is an error, as no file of a kernel that is read here is.
pub const FILE_BYTES_MAX: usize = 16 << 20;
const CHUNK_BYTES: usize = 4096;

/// A file that is read again and again, through a descriptor that stays open.
///
/// A file of the kernel is made anew by each read from its beginning. When its cgroup is gone, reads fail with ENODEV, and the next one opens the path again.
#[derive(Debug)]
pub struct KeptFile {
    path: PathBuf,
    file: Option<File>,
}

impl KeptFile {
    /// A file that is opened when it is read for the first time.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file; the buffer grows when the file does, and is used again otherwise.
    ///
    /// # Errors
    ///
    /// The file is gone or cannot be read. Its descriptor is closed then.
    pub fn read<'a>(&mut self, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        let length = read_whole(file, buffer).inspect_err(|_| self.file = None)?;
        Ok(buffer.get(..length).unwrap_or_default())
    }

    /// Closes the descriptor until the next read: where there may not be many.
    pub fn close(&mut self) {
        self.file = None;
    }
}

/// Reads from the beginning; returns the length.
fn read_whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.len() < CHUNK_BYTES {
        buffer.resize(CHUNK_BYTES, 0);
    }
    let mut length = 0;
    loop {
        let free = buffer.get_mut(length..).unwrap_or_default();
        match file.read_at(free, length as u64) {
            // Small files of the kernel come in one piece: what ends before the buffer does is whole.
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == buffer.len() {
            if length >= FILE_BYTES_MAX {
                return Err(io::Error::other(format!("longer than {FILE_BYTES_MAX} bytes")));
            }
            buffer.resize(length * 2, 0);
        } else if length < CHUNK_BYTES {
            return Ok(length);
        }
    }
}

/// Reads a file that is rarely read.
///
/// # Errors
///
/// The file is not there, cannot be read or is longer than [`FILE_BYTES_MAX`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut content)?;
    if content.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("longer than {FILE_BYTES_MAX} bytes")));
    }
    Ok(content)
}

/// The names of the folders in a folder, sorted.
///
/// # Errors
///
/// The folder is not there or cannot be read.
pub fn folders(path: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(path)?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Whether an error means that the file or its cgroup is not there: it never was, or has vanished.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

/// Changes the files of a node.
pub trait Writer: Send {
    /// Replaces what a file says, with one write. Files are never created.
    ///
    /// # Errors
    ///
    /// The file is not there, or the kernel refuses the text.
    fn write(&mut self, path: &Path, text: &str) -> io::Result<()>;

    /// Adds a line to a file such as `tasks`, with one write.
    ///
    /// # Errors
    ///
    /// The file is not there, or the kernel refuses the line.
    fn append(&mut self, path: &Path, line: &str) -> io::Result<()>;

    /// Makes a folder; one that is there already is no error.
    ///
    /// # Errors
    ///
    /// The folder above is not there, or the kernel refuses the folder.
    fn create_folder(&mut self, path: &Path) -> io::Result<()>;

    /// Removes a folder of a kernel's file system, whose files vanish with it.
    ///
    /// # Errors
    ///
    /// The kernel refuses: it is in use.
    fn remove_folder(&mut self, path: &Path) -> io::Result<()>;
}

/// Writes to the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelWriter;

impl Writer for KernelWriter {
    fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        OpenOptions::new().write(true).truncate(true).open(path)?.write_all(text.as_bytes())
    }

    fn append(&mut self, path: &Path, line: &str) -> io::Result<()> {
        OpenOptions::new().append(true).open(path)?.write_all(line.as_bytes())
    }

    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// Writes nothing: for an agent that only observes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservingWriter;

impl Writer for ObservingWriter {
    fn write(&mut self, _: &Path, _: &str) -> io::Result<()> {
        Err(only_observes())
    }

    fn append(&mut self, _: &Path, _: &str) -> io::Result<()> {
        Err(only_observes())
    }

    fn create_folder(&mut self, _: &Path) -> io::Result<()> {
        Err(only_observes())
    }

    fn remove_folder(&mut self, _: &Path) -> io::Result<()> {
        Err(only_observes())
    }
}

fn only_observes() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "--observe-only is set: nothing is written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_file_is_read_from_its_beginning_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpuacct.usage");
        let (mut file, mut buffer) = (KeptFile::new(path.clone()), Vec::new());
        assert!(is_gone(&file.read(&mut buffer).unwrap_err()));
        for text in ["1\n", "123456789\n", "7\n", &"long ".repeat(5000)] {
            fs::write(&path, text).unwrap();
            assert_eq!(file.read(&mut buffer).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn nothing_is_created_by_a_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpu.shares");
        assert!(is_gone(&KernelWriter.write(&path, "2").unwrap_err()));
        assert!(!path.exists());
        fs::write(&path, "1024\n").unwrap();
        KernelWriter.write(&path, "2").unwrap();
        KernelWriter.append(&path, "3").unwrap();
        assert_eq!(read(&path).unwrap(), b"23");
        assert_eq!(
            ObservingWriter.write(&path, "4").unwrap_err().to_string(),
            "--observe-only is set: nothing is written"
        );
    }

    #[test]
    fn folders_are_listed_without_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["pod2", "pod1"] {
            KernelWriter.create_folder(&folder.path().join(name)).unwrap();
        }
        KernelWriter.create_folder(&folder.path().join("pod1")).unwrap();
        fs::write(folder.path().join("tasks"), "").unwrap();
        assert_eq!(folders(folder.path()).unwrap(), ["pod1", "pod2"]);
        KernelWriter.remove_folder(&folder.path().join("pod1")).unwrap();
        assert_eq!(folders(folder.path()).unwrap(), ["pod2"]);
    }
}
