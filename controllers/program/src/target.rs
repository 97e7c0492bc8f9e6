//! A file that a command writes its answer to.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// The file that an answer is written to.
pub struct Target<'a> {
    file: &'a Path,
    force: bool,
}

impl<'a> Target<'a> {
    /// Refuses a file that is in the way, or has no folder, before anything is done. `flag` is what names it.
    pub fn of(file: &'a Path, flag: &str, force: bool) -> Result<Self> {
        if !force && file.exists() {
            bail!("{} exists already; name another file, or overwrite it with --force", file.display());
        }
        let folder = file.parent().filter(|folder| *folder != Path::new("")).map_or(PathBuf::from("."), Path::to_owned);
        if !folder.is_dir() {
            bail!("{flag} {}: there is no folder {}; create it, or name another", file.display(), folder.display());
        }
        Ok(Self { file, force })
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, text: &str) -> Result<()> {
        let Self { file, force } = self;
        let opened = OpenOptions::new().write(true).create_new(!force).create(*force).truncate(*force).open(file);
        let mut opened = match opened {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!("{} exists already", file.display()),
            opened => opened.with_context(|| format!("{} cannot be written", file.display()))?,
        };
        opened.write_all(text.as_bytes()).and_then(|()| opened.flush()).map_err(|error| {
            drop(opened);
            // Half a file would be read as a whole one.
            let _ = fs::remove_file(file);
            anyhow::Error::new(error).context(format!("{} cannot be written", file.display()))
        })
    }
}
